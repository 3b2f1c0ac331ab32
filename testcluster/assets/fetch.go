// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// documentLimit limits documents with checksums. The index of envtest has a few hundred kilobytes.
const documentLimit = 32 << 20

// fetcher reads from servers.
type fetcher struct {
	client           *http.Client
	firstByte, stall time.Duration
	os, arch         string
	progress         io.Writer
	// folder receives files. They have their names only when they are complete and verified.
	folder string

	mu       sync.Mutex
	archives map[string]func() (string, error) // by address
}

func newFetcher(s settings, folder string, progress io.Writer) *fetcher {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // checksums are those of the files
	return &fetcher{
		client:    &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		firstByte: s.firstByte, stall: s.stall, os: s.os, arch: s.arch, progress: progress, folder: folder,
		archives: map[string]func() (string, error){},
	}
}

const maxRedirects = 5

var errRedirects = errors.New("more than 5 redirects")

func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("a redirect to an address without TLS")
	}
	return nil
}

// fetchError has the host of an address but not the rest, which may contain a password.
type fetchError struct {
	host string
	err  error
}

func (e *fetchError) Error() string { return e.host + ": " + e.err.Error() }
func (e *fetchError) Unwrap() error { return e.err }

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "the address"
}

// read writes the content of an address to out.
func (f *fetcher) read(ctx context.Context, address string, limit int64, label string, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := f.readUntil(ctx, cancel, address, limit, label, out)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // instead of what the client reports then
	}
	var wrapped *url.Error // contains the whole address
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var lookup *net.DNSError // contains the host again
	if errors.As(err, &lookup) {
		err = errors.New(lookup.Err)
	}
	return &fetchError{hostOf(address), err}
}

func (f *fetcher) readUntil(ctx context.Context, cancel context.CancelCauseFunc, address string, limit int64, label string, out io.Writer) error {
	first := time.AfterFunc(f.firstByte, func() { cancel(fmt.Errorf("no answer within %s", f.firstByte)) })
	defer first.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err //nolint:wrapcheck // read does
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // read does
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s (%s)", response.Status, path.Base(response.Request.URL.Path))
	}
	body := &counted{reader: io.LimitReader(response.Body, limit+1), first: func() { first.Stop() }}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go f.watch(watched, cancel, body, label, response.ContentLength)
	n, err := io.Copy(out, body)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && response.ContentLength < 0:
		return fmt.Errorf("truncated: %s ends after %d bytes", path.Base(response.Request.URL.Path), n)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("truncated: %s ends after %d of %d bytes", path.Base(response.Request.URL.Path), n, response.ContentLength)
	case err != nil:
		return err //nolint:wrapcheck // read does
	case n > limit:
		return fmt.Errorf("%s is larger than %d bytes", path.Base(response.Request.URL.Path), limit)
	}
	return nil
}

// watch reports progress, and cancels a body that stalls.
func (f *fetcher) watch(ctx context.Context, cancel context.CancelCauseFunc, body *counted, label string, size int64) {
	stalls, reports := time.NewTicker(f.stall), time.NewTicker(reportEvery)
	defer stalls.Stop()
	defer reports.Stop()
	var before int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-stalls.C:
			now := body.n.Load()
			if now-before < leastGrowth {
				cancel(fmt.Errorf("the download stalled: %d bytes in %s", now-before, f.stall))
			}
			before = now
		case <-reports.C:
			if size > 0 && label != "" {
				fmt.Fprintf(f.progress, "  %s: %d of %d MB\n", label, body.n.Load()>>20, size>>20)
			}
		}
	}
}

// counted counts what is read.
type counted struct {
	reader io.Reader
	first  func()
	n      atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if n > 0 && c.n.Add(int64(n)) == int64(n) {
		c.first()
	}
	return n, err //nolint:wrapcheck // io.EOF
}

// document returns a document with checksums.
func (f *fetcher) document(ctx context.Context, address string) ([]byte, error) {
	var content bytes.Buffer
	if err := f.read(ctx, address, documentLimit, "", &content); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// program puts the program of a release into the folder, and returns its SHA-256.
func (f *fetcher) program(ctx context.Context, name string, r release) (sum string, err error) {
	started := time.Now()
	final, temp := filepath.Join(f.folder, name), filepath.Join(f.folder, name+".part")
	if r.member == "" {
		err = f.file(ctx, r, name, temp)
	} else {
		err = f.extract(ctx, r, temp)
	}
	if err != nil {
		return "", err
	}
	sum, size, head, err := digestFile(temp)
	if err != nil {
		return "", err
	}
	if err := checkExecutable(head, f.os, f.arch); err != nil {
		return "", &fetchError{hostOf(r.address), fmt.Errorf("%s is %w", path.Base(r.address), err)}
	}
	if err := errors.Join(os.Chmod(temp, 0o755), os.Rename(temp, final)); err != nil {
		return "", fmt.Errorf("put the downloaded program in place: %w", err)
	}
	fmt.Fprintf(f.progress, "  %s: downloaded from %s, %d MB in %s, SHA-256 %s\n",
		name, hostOf(r.address), size>>20, time.Since(started).Round(100*time.Millisecond), sum)
	return sum, nil
}

// file downloads and verifies the file of a release.
func (f *fetcher) file(ctx context.Context, r release, label, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("download %s: %w", label, err)
	}
	defer func() { _ = out.Close() }()
	sum := r.algorithm.new()
	if err := f.read(ctx, r.address, fileLimit, label, io.MultiWriter(out, sum)); err != nil {
		return err
	}
	head := make([]byte, headBytes)
	n, err := out.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read what was downloaded: %w", err)
	}
	if err := r.verify(hex.EncodeToString(sum.Sum(nil)), head[:n]); err != nil {
		return &fetchError{hostOf(r.address), err}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("download %s: %w", label, err)
	}
	return nil
}

// fileLimit limits what is written to the disk before its checksum is known.
const fileLimit = 1 << 30

// extract writes the member of an archive, which is downloaded once for all members.
func (f *fetcher) extract(ctx context.Context, r release, to string) error {
	f.mu.Lock()
	archive := f.archives[r.address]
	if archive == nil {
		file := filepath.Join(f.folder, fmt.Sprintf("archive-%d.part", len(f.archives)))
		archive = sync.OnceValues(func() (string, error) { return file, f.file(ctx, r, path.Base(r.address), file) })
		f.archives[r.address] = archive
	}
	f.mu.Unlock()
	file, err := archive()
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("open an archive: %w", err)
	}
	defer func() { _ = in.Close() }()
	if err := extractMember(in, r.member, to); err != nil {
		return &fetchError{hostOf(r.address), fmt.Errorf("%s: %w", path.Base(r.address), err)}
	}
	return nil
}

// extractMember writes the regular file with the base name of a .tar.gz.
func extractMember(archive io.Reader, name, to string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("not a .tar.gz: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("no file %s in the archive", name)
		}
		if err != nil {
			return fmt.Errorf("not a .tar.gz: %w", err)
		}
		if header.Typeflag != tar.TypeReg || path.Base(header.Name) != name {
			continue
		}
		out, err := os.Create(to)
		if err != nil {
			return err //nolint:wrapcheck // complete
		}
		_, err = io.CopyN(out, files, min(header.Size, fileLimit))
		return errors.Join(err, out.Close())
	}
}

// digestFile returns the SHA-256 of a file, its size and its first bytes.
func digestFile(name string) (sum string, size int64, head []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", 0, nil, fmt.Errorf("read a program: %w", err)
	}
	defer func() { _ = file.Close() }()
	digest := sha256Sum.new()
	if size, err = io.Copy(digest, file); err != nil {
		return "", 0, nil, fmt.Errorf("read a program: %w", err)
	}
	head = make([]byte, min(size, headBytes))
	if _, err := file.ReadAt(head, 0); err != nil {
		return "", 0, nil, fmt.Errorf("read a program: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), size, head, nil
}

// removeParts removes what is not a complete program.
func (f *fetcher) removeParts() error {
	parts, err := filepath.Glob(filepath.Join(f.folder, "*.part"))
	if err != nil {
		return fmt.Errorf("list partial downloads: %w", err)
	}
	var errs []error
	for _, part := range parts {
		errs = append(errs, os.Remove(part))
	}
	return errors.Join(errs...)
}

// lines makes a writer safe for several goroutines that write whole lines.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p) //nolint:wrapcheck // transparent
}
