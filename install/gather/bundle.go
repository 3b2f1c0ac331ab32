// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
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
	Root string // "" is /
	// ID is part of the name of the bundle's folder, log-bundle-ID.
	ID string
	// NodeOnly gathers what installer-masters-gather.sh does: the logs of the node itself, at the top.
	NodeOnly bool
	// Limit is the maximum size of the bundle in bytes; 0 is none. The largest files lose their oldest lines.
	Limit int64
	Time  time.Time
}

var (
	// ErrID is in the error of an ID that cannot be the name of a folder.
	ErrID = errors.New("the ID of a log bundle has letters, digits, dots, dashes and underscores only")
	// ErrLimit is in the error of a limit that is too small.
	ErrLimit = errors.New("the size limit is too small for any log bundle")
)

var validID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

const (
	logFile     = "gather.log"
	timeout     = time.Minute // of a program or a request
	largestFile = 16 << 20
	smallestCut = 1 << 9 // size of a log that is not shortened further
)

// File writes a bundle into a new file of mode 0600, atomically.
func File(ctx context.Context, file string, o Options) error {
	text, err := Bundle(ctx, o)
	if err != nil {
		return err
	}
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("write the log bundle: %w", err)
	}
	defer root.Close() //nolint:errcheck // it was only opened
	if _, err := files.Update(root, files.File{Path: filepath.Base(file), Mode: 0o600, Content: text}); err != nil {
		return fmt.Errorf("write the log bundle %s: %w", file, err)
	}
	return nil
}

// Bundle returns a bundle: a compressed archive with the folder log-bundle-ID (R-BIP-23).
func Bundle(ctx context.Context, o Options) ([]byte, error) {
	if !validID.MatchString(o.ID) {
		return nil, fmt.Errorf("%w: %q", ErrID, o.ID)
	}
	o.Root = cmp.Or(o.Root, "/")
	b := &bundle{Options: o, files: map[string][]byte{}}
	b.gather(ctx)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gather logs: %w", context.Cause(ctx))
	}
	return b.fit()
}

// bundle has the texts of files, without secrets.
type bundle struct {
	Options

	mu    sync.Mutex
	files map[string][]byte
	log   []string
}

// note adds a line about a file to gather.log.
func (b *bundle) note(name, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, name+": "+string(Redact(fmt.Appendf(nil, format, args...))))
}

// secretFile matches names of files and folders that are nothing but secrets, or have all of them, such as a database.
var secretFile = regexp.MustCompile(`(?i)kubeconfig|secret|password|(?:^|/)(?:\.kube|\.docker|\.dockerconfigjson|shadow|htpasswd|id_(?:rsa|ecdsa|ed25519))(?:/|$)|\.(?:key|ign|db)(?:/|$)`)

// add adds a text to the bundle without its secrets. It omits binary files, and files whose names indicate secrets.
func (b *bundle) add(name string, text []byte) {
	switch {
	case secretFile.MatchString(name) && path.Base(name) != secretNames:
		b.note(name, "omitted: its name indicates secrets")
		return
	case bytes.IndexByte(text, 0) >= 0:
		b.note(name, "omitted: not a text")
		return
	}
	clean := Redact(text)
	if !bytes.Equal(clean, text) {
		b.note(name, "secrets are replaced by %s", placeholder)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[name] = clean
}

// fit returns the largest archive within the limit.
func (b *bundle) fit() ([]byte, error) {
	for most := largestFile; most >= smallestCut; most /= 2 {
		out, err := b.archive(most)
		if err != nil || b.Limit == 0 || int64(len(out)) <= b.Limit {
			return out, err
		}
	}
	return nil, fmt.Errorf("%w: %d bytes", ErrLimit, b.Limit)
}

// archive returns an archive of the newest lines of all files.
func (b *bundle) archive(most int) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	add := func(name string, text []byte) error {
		header := &tar.Header{Name: path.Join("log-bundle-"+b.ID, name), Mode: 0o600, Size: int64(len(text)), ModTime: b.Time, Format: tar.FormatPAX}
		err := archive.WriteHeader(header)
		_, writeErr := archive.Write(text)
		return errors.Join(err, writeErr)
	}
	var errs []error
	log := slices.Clone(b.log)
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		text := b.files[name]
		if over := len(text) - most; over > 0 {
			over += bytes.IndexByte(text[over:], '\n') + 1
			text = text[over:]
			log = append(log, fmt.Sprintf("%s: the oldest %d bytes are omitted", name, over))
		}
		errs = append(errs, add(name, text))
	}
	slices.Sort(log)
	errs = append(errs, add(logFile, []byte(strings.Join(append(log, ""), "\n"))), archive.Close(), zip.Close())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("archive the logs: %w", err)
	}
	return out.Bytes(), nil
}
