// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cavaliergopher/cpio"
)

var (
	// ErrTooLarge is in the error of a config that is too large after compression.
	ErrTooLarge = errors.New("the config is too large for the ISO's area")
	// ErrHasConfig is in the error of an ISO with a config.
	ErrHasConfig = errors.New("the ISO has an Ignition config already; use one that has none")
	// ErrSameFile is in the error of an output that is the input.
	ErrSameFile = errors.New("the output is the input, which must not change; choose another name")
)

const configName = "config.ign"

// Embed writes a copy of the ISO in with the config in its area to out, atomically (R-BIP-5). The errors are ErrNotISO,
// ErrNoArea, ErrHasConfig, ErrTooLarge and ErrSameFile, or those of files.
func Embed(in, out string, config []byte) error {
	source, err := os.Open(in)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer source.Close() //nolint:errcheck // it was only read
	info, err := source.Stat()
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if other, err := os.Stat(out); err == nil && os.SameFile(info, other) {
		return fmt.Errorf("%s: %w", out, ErrSameFile)
	}
	a, err := find(source, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if held, err := a.read(source); err != nil || held != nil {
		return fmt.Errorf("%s: %w", in, errors.Join(ErrHasConfig, err))
	}
	content, err := a.fill(config)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return write(out, source, a, content)
}

func (a area) fill(config []byte) ([]byte, error) {
	packed, err := archive(config)
	if err != nil {
		return nil, err
	}
	if int64(len(packed)) > a.length {
		return nil, fmt.Errorf("%w: it takes %d bytes compressed, %d more than the area's %d; most of it before compression: %v",
			ErrTooLarge, len(packed), int64(len(packed))-a.length, a.length, largest(config))
	}
	return append(packed, make([]byte, a.length-int64(len(packed)))...), nil
}

// largest returns the three largest parts of a config, with their sizes.
func largest(config []byte) []string {
	var c struct {
		Storage struct{ Files, Directories, Links []json.RawMessage }
		Systemd struct{ Units []json.RawMessage }
	}
	if json.Unmarshal(config, &c) != nil {
		return nil // Ignition reports it
	}
	parts := slices.Concat(c.Storage.Files, c.Storage.Directories, c.Storage.Links, c.Systemd.Units)
	slices.SortStableFunc(parts, func(a, b json.RawMessage) int { return len(b) - len(a) })
	var list []string
	for _, part := range parts[:min(3, len(parts))] {
		var id struct{ Path, Name string }
		_ = json.Unmarshal(part, &id) // it was read above
		list = append(list, fmt.Sprintf("%s %d bytes", cmp.Or(id.Path, id.Name), len(part)))
	}
	return list
}

func archive(config []byte) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err //nolint:wrapcheck // the level is valid
	}
	w := cpio.NewWriter(compressed)
	err = w.WriteHeader(&cpio.Header{Name: configName, Mode: cpio.TypeReg | 0o644, Size: int64(len(config)), Links: 1})
	if err == nil {
		_, err = w.Write(config)
	}
	err = errors.Join(err, w.Close(), compressed.Close())
	if err != nil {
		return nil, fmt.Errorf("write the archive of the config: %w", err)
	}
	return packed.Bytes(), nil
}

func write(out string, source *os.File, a area, content []byte) error {
	part, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".part-")
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer os.Remove(part.Name()) //nolint:errcheck // only after an error
	_, err = source.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(part, source)
	}
	if err == nil {
		_, err = part.WriteAt(content, a.offset)
	}
	// The config has private keys.
	err = errors.Join(err, part.Chmod(0o600))
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return os.Rename(part.Name(), out) //nolint:wrapcheck // it names the files
}

// Read returns the config of an ISO, or nil if it has none.
func Read(path string) ([]byte, error) {
	source, err := os.Open(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer source.Close() //nolint:errcheck // it was only read
	info, err := source.Stat()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	a, err := find(source, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	config, err := a.read(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

var errArchive = errors.New("cannot read the content of its area")

func (a area) read(image io.ReaderAt) ([]byte, error) {
	content := make([]byte, a.length)
	if _, err := image.ReadAt(content, a.offset); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotISO, err)
	}
	if len(bytes.Trim(content, "\x00")) == 0 {
		return nil, nil
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errArchive, err)
	}
	unpacked.Multistream(false) // zeros follow
	r := cpio.NewReader(unpacked)
	for {
		header, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errArchive, err)
		}
		if header.Name == configName {
			config, err := io.ReadAll(r)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errArchive, err)
			}
			return config, nil
		}
	}
}
