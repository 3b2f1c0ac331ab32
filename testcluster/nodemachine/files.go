// SPDX-License-Identifier: Apache-2.0

package nodemachine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// ErrFile is returned for a file that Put does not support.
var ErrFile = errors.New("not a file for a machine")

// File is a file or a folder on the disk of a machine. Its owner is root.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	// Mode contains the permissions, and fs.ModeDir for a folder.
	Mode    fs.FileMode
	Content []byte
}

// Folder returns the files and folders below a local folder, with their permissions.
func Folder(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		file := File{Path: filepath.ToSlash(relative), Mode: info.Mode()}
		switch {
		case info.IsDir():
		case info.Mode().IsRegular():
			if file.Content, err = os.ReadFile(at); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %s is neither a file nor a folder", ErrFile, at)
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the files below %s: %w", root, err)
	}
	return files, nil
}

// Put writes files to the disk of a running machine, overwriting existing ones. Existing parent folders keep their
// permissions; new ones have 0755.
func (m *Machine) Put(ctx context.Context, files ...File) error {
	var archive bytes.Buffer
	if err := pack(&archive, files); err != nil {
		return fmt.Errorf("put files on machine %s: %w", m.name, err)
	}
	if _, err := m.engine.Pipe(ctx, &archive, "exec", "--interactive", m.name,
		"tar", "--extract", "--directory=/", "--preserve-permissions", "--no-overwrite-dir"); err != nil {
		return fmt.Errorf("put files on machine %s: %w", m.name, err)
	}
	return nil
}

func pack(out io.Writer, files []File) error {
	w := tar.NewWriter(out)
	for _, file := range files {
		if !fs.ValidPath(file.Path) || file.Path == "." {
			return fmt.Errorf("%w: the path %q must be relative to the root", ErrFile, file.Path)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(file.Path), Mode: int64(file.Mode.Perm()), Size: int64(len(file.Content))}
		if file.Mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return err //nolint:wrapcheck // names the file
		}
		if _, err := w.Write(file.Content); err != nil {
			return fmt.Errorf("write %s: %w", file.Path, err)
		}
	}
	return w.Close() //nolint:wrapcheck // complete
}
