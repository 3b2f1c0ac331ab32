// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// sorted makes the order of an archive independent of that of its files.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// writeTar writes a .tar.gz without owners. All files have the same time.
func writeTar(file string, at time.Time, entries []entry) error {
	return create(file, func(w io.Writer) error {
		compressed := gzip.NewWriter(w)
		archive := tar.NewWriter(compressed)
		for _, e := range sorted(entries) {
			header := &tar.Header{
				Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: at.UTC().Truncate(time.Second),
			}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			if _, err := archive.Write(e.content); err != nil {
				return err
			}
		}
		return errors.Join(archive.Close(), compressed.Close())
	})
}

// writeZip writes the same as a .zip.
func writeZip(file string, at time.Time, entries []entry) error {
	return create(file, func(w io.Writer) error {
		archive := zip.NewWriter(w)
		for _, e := range sorted(entries) {
			header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC().Truncate(time.Second)}
			header.SetMode(e.mode)
			f, err := archive.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := f.Write(e.content); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

func create(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
