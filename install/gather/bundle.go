// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solonode/sno/render/files"
)

// Options of Bundle.
type Options struct {
	Root string
	// ID is part of the name of the bundle's folder, log-bundle-ID.
	ID string
	// NodeOnly gathers what installer-masters-gather.sh does: the logs of the node itself, at the top.
	NodeOnly bool
	// Programs is a folder with systemctl, journalctl, crictl, podman and ip; "" uses PATH.
	Programs string
	// Limit is the maximum size of the bundle in bytes; 0 is none. The largest logs lose their oldest lines, and other
	// large files are omitted.
	Limit int64
	Time  time.Time
	// Timeout of a program or a request; 0 is a minute.
	Timeout time.Duration
}

var (
	// ErrID is in the error of an ID that cannot be the name of a folder.
	ErrID = errors.New("the ID of a log bundle has letters, digits, dots, dashes and underscores only")
	// ErrLimit is in the error of a limit that is too small.
	ErrLimit = errors.New("the size limit is too small for any log bundle")
)

var validID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

const (
	logFile        = "gather.log"
	defaultTimeout = time.Minute
	largestFile    = 16 << 20
	// smallestCut is the size of a log that is not shortened further.
	smallestCut = 1 << 10
)

// File writes a bundle into a new file of mode 0600, atomically.
func File(ctx context.Context, file string, o Options) error {
	var out bytes.Buffer
	if err := Bundle(ctx, &out, o); err != nil {
		return err
	}
	folder := filepath.Dir(file)
	err := os.MkdirAll(folder, 0o700)
	if err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	defer root.Close() //nolint:errcheck // it was only opened
	if _, err := files.Update(root, files.File{Path: filepath.Base(file), Mode: 0o600, Content: out.Bytes()}); err != nil {
		return fmt.Errorf("write the log bundle %s: %w", file, err)
	}
	return nil
}

// Bundle writes a bundle: a compressed archive with the folder log-bundle-ID (R-BIP-23).
func Bundle(ctx context.Context, out io.Writer, o Options) error {
	if !validID.MatchString(o.ID) {
		return fmt.Errorf("%w: %q", ErrID, o.ID)
	}
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	b := &bundle{Options: o, files: map[string][]byte{}}
	b.gather(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gather logs: %w", context.Cause(ctx))
	}
	archive, err := b.fit()
	if err != nil {
		return err
	}
	if _, err := out.Write(archive); err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	return nil
}

// bundle has the texts of files, without secrets.
type bundle struct {
	Options

	mu    sync.Mutex
	files map[string][]byte
	log   []string
}

func (b *bundle) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, _ := redact(fmt.Appendf(nil, format, args...), func() bool { return false }) // what happened after the end is noted too
	b.log = append(b.log, string(line))
}

// add adds a text to the bundle without its secrets. It omits binary files, and files whose names indicate secrets.
func (b *bundle) add(ctx context.Context, name string, text []byte) {
	if kind := secretByName(name); kind != "" {
		b.note("%s: omitted: its name indicates a secret (%s)", name, kind)
		return
	}
	if bytes.IndexByte(text[:min(len(text), 8<<10)], 0) >= 0 || isGzip(text) || isTar(text) {
		b.note("%s: omitted: not a text", name)
		return
	}
	clean, kinds := Redact(ctx, text)
	if len(kinds) > 0 {
		b.note("%s: replaced by %s: %v", name, placeholder, kinds)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[name] = clean
}

// fit returns the largest archive within the limit: files that are too large for it lose their oldest lines if they are
// logs, and are omitted otherwise.
func (b *bundle) fit() ([]byte, error) {
	for most := largestFile; ; most /= 2 {
		out, err := b.archive(most)
		switch {
		case err != nil || b.Limit == 0 || int64(len(out)) <= b.Limit:
			return out, err
		case most < smallestCut:
			return nil, fmt.Errorf("%w: %d bytes, and it has %d", ErrLimit, b.Limit, len(out))
		}
	}
}

func (b *bundle) archive(most int) ([]byte, error) {
	log, texts := slices.Clone(b.log), map[string][]byte{}
	for name, text := range b.files {
		switch {
		case len(text) <= most:
			texts[name] = text
		case strings.HasSuffix(name, ".log"):
			newest := text[len(text)-most:]
			newest = newest[bytes.IndexByte(newest, '\n')+1:]
			texts[name] = newest
			log = append(log, fmt.Sprintf("%s: the oldest %d bytes are omitted", name, len(text)-len(newest)))
		default:
			log = append(log, fmt.Sprintf("%s: omitted: it has %d bytes", name, len(text)))
		}
	}
	slices.Sort(log)
	texts[logFile] = []byte(strings.Join(append(log, ""), "\n"))
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join("log-bundle-"+b.ID, name), Mode: 0o600, Size: int64(len(texts[name])), ModTime: b.Time, Format: tar.FormatPAX,
		}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write(texts[name])
		}
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return out.Bytes(), nil
}
