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
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
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
	// Limit is the maximum size of the bundle in bytes; 0 is none. The largest logs lose their oldest lines first, then
	// files are omitted.
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
	// smallestCut is the size below which a log is omitted instead of being shortened.
	smallestCut = 1 << 10
)

// File writes a bundle into a file of mode 0600, atomically.
func File(ctx context.Context, file string, o Options) error {
	if !validID.MatchString(o.ID) {
		// An ID with a slash would create a folder.
		return fmt.Errorf("%w: %q", ErrID, o.ID)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	// A new file, so that nobody has it open.
	if err := os.Remove(file + ".part"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	part, err := os.OpenFile(file+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	err = Bundle(ctx, part, o)
	if err == nil {
		err = part.Sync()
	}
	if closeErr := part.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
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
	b := &bundle{Options: o, files: map[string]*file{}}
	b.gather(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("gather logs: %w", context.Cause(ctx))
	}
	members, err := b.fit()
	if err != nil {
		return err
	}
	for _, m := range members {
		if _, err := out.Write(m); err != nil {
			return fmt.Errorf("write the log bundle: %w", err)
		}
	}
	return nil
}

// bundle has compressed files. Each is a member of a gzip stream, so the total size is the sum of the members.
type bundle struct {
	Options

	mu      sync.Mutex
	files   map[string]*file
	log     []string
	writers sync.Pool
}

type file struct {
	compressed []byte
	// size is that of the text, lost the number of bytes that were cut.
	size, lost int
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
	f := &file{}
	if len(clean) > largestFile {
		clean, f.lost = tail(clean, largestFile)
	}
	if err := b.compress(f, name, clean); err != nil {
		b.note("%s: %v", name, err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[name] = f
}

// tail returns the newest lines, and the number of bytes before them.
func tail(text []byte, size int) ([]byte, int) {
	from := len(text) - size
	if eol := bytes.IndexByte(text[from:], '\n'); eol >= 0 {
		from += eol + 1
	}
	return text[from:], from
}

func (b *bundle) compress(f *file, name string, text []byte) error {
	var out bytes.Buffer
	zip, ok := b.writers.Get().(*gzip.Writer)
	if !ok {
		zip = gzip.NewWriter(nil)
	}
	defer b.writers.Put(zip)
	zip.Reset(&out)
	archive := tar.NewWriter(zip)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join("log-bundle-"+b.ID, name), Mode: 0o600, Size: int64(len(text)), ModTime: b.Time, Format: tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("cannot be archived: %w", err)
	}
	if _, err := archive.Write(text); err != nil {
		return fmt.Errorf("cannot be archived: %w", err)
	}
	// Not Close: the archive ends after the last member.
	if err := archive.Flush(); err != nil {
		return fmt.Errorf("cannot be archived: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("cannot be compressed: %w", err)
	}
	f.compressed, f.size = out.Bytes(), len(text)
	return nil
}

func (f *file) text() ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(f.compressed))
	if err != nil {
		return nil, fmt.Errorf("read a file of the bundle: %w", err)
	}
	archive := tar.NewReader(zip)
	if _, err := archive.Next(); err != nil {
		return nil, fmt.Errorf("read a file of the bundle: %w", err)
	}
	text := make([]byte, f.size)
	if _, err := io.ReadFull(archive, text); err != nil {
		return nil, fmt.Errorf("read a file of the bundle: %w", err)
	}
	return text, nil
}

// fit shortens logs until the bundle is within its limit, and returns the members of the archive, sorted by name.
func (b *bundle) fit() ([][]byte, error) {
	for {
		members, size, err := b.members()
		if err != nil || b.Limit == 0 || size <= b.Limit {
			return members, err
		}
		name := b.largest()
		if name == "" {
			return nil, fmt.Errorf("%w: %d bytes, and it has %d", ErrLimit, b.Limit, size)
		}
		if err := b.halve(name); err != nil {
			return nil, err
		}
	}
}

func (b *bundle) members() ([][]byte, int64, error) {
	log := &file{}
	if err := b.compress(log, logFile, []byte(b.logText())); err != nil {
		return nil, 0, err
	}
	end, err := endOfArchive()
	if err != nil {
		return nil, 0, err
	}
	var names []string
	for name := range b.files {
		names = append(names, name)
	}
	slices.Sort(names)
	members := [][]byte{log.compressed}
	for _, name := range names {
		members = append(members, b.files[name].compressed)
	}
	members = append(members, end)
	var size int64
	for _, m := range members {
		size += int64(len(m))
	}
	return members, size, nil
}

func endOfArchive() ([]byte, error) {
	var end bytes.Buffer
	zip, err := gzip.NewWriterLevel(&end, gzip.BestSpeed)
	if err == nil {
		err = tar.NewWriter(zip).Close()
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return end.Bytes(), nil
}

func (b *bundle) logText() string {
	lines := slices.Clone(b.log)
	for name, f := range b.files {
		if f.lost > 0 {
			lines = append(lines, fmt.Sprintf("%s: the oldest lines are omitted, at least %d bytes", name, f.lost))
		}
	}
	slices.Sort(lines)
	return strings.Join(append(lines, ""), "\n")
}

func (b *bundle) largest() string {
	var log, other string
	for name, f := range b.files {
		switch {
		case strings.HasSuffix(name, ".log") && f.size > smallestCut:
			if log == "" || larger(b.files, name, log) {
				log = name
			}
		case other == "" || larger(b.files, name, other):
			other = name
		}
	}
	if log != "" {
		return log
	}
	return other
}

func larger(files map[string]*file, a, b string) bool {
	if d := len(files[a].compressed) - len(files[b].compressed); d != 0 {
		return d > 0
	}
	return a < b
}

// halve removes the older half of a log, or omits a file.
func (b *bundle) halve(name string) error {
	f := b.files[name]
	if !strings.HasSuffix(name, ".log") || f.size <= smallestCut {
		delete(b.files, name)
		b.note("%s: omitted, so that the bundle has at most %d bytes", name, b.Limit)
		return nil
	}
	text, err := f.text()
	if err != nil {
		return err
	}
	newer, lost := tail(text, len(text)/2)
	f.lost += lost
	return b.compress(f, name, newer)
}
