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
	"path"
)

type leak struct {
	path string
	kind Kind
}

// findLeaks returns what Redact would replace, and files with secret names, also in nested gzip and tar.
func findLeaks(r io.Reader, name string) ([]leak, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if isGzip(text) {
		unzipped, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return findLeaks(unzipped, name)
	}
	if isTar(text) {
		return findLeaksInTar(text, name)
	}
	var leaks []leak
	_, kinds := Redact(context.Background(), text)
	for _, kind := range kinds {
		leaks = append(leaks, leak{name, kind})
	}
	return leaks, nil
}

func findLeaksInTar(text []byte, name string) ([]leak, error) {
	var leaks []leak
	archive := tar.NewReader(bytes.NewReader(text))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return leaks, nil
		}
		if err != nil {
			return leaks, fmt.Errorf("%s: %w", name, err)
		}
		member := path.Join(name, header.Name)
		if kind := secretByName(header.Name); kind != "" && header.Typeflag == tar.TypeReg {
			leaks = append(leaks, leak{member, kind})
		}
		inside, err := findLeaks(archive, member)
		leaks = append(leaks, inside...)
		if err != nil {
			return leaks, err
		}
	}
}
