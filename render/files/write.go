// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Errors of writing files.
var (
	ErrNotEmpty    = errors.New("the folder is not empty; choose another, or replace it")
	ErrInvalidPath = errors.New("not a path inside the folder")
	ErrDuplicate   = errors.New("used by two files")
	ErrInvalidMode = errors.New("a mode with more than permissions")
)

// folderMode is restrictive because the folders have keys.
const folderMode fs.FileMode = 0o700

// Write writes files into a folder that does not exist or is empty. After an error the folder is unchanged.
func Write(dir string, files []File) error { return write(dir, files, false) }

// Replace is Write for a folder that may have files. Readers find either the old files or the new ones.
func Replace(dir string, files []File) error { return write(dir, files, true) }

// CheckWritable returns the error with which Write, or Replace, would fail: a folder that has files or cannot be
// created.
func CheckWritable(dir string, replace bool) error {
	dir, _, err := target(dir, replace)
	if err != nil {
		return err
	}
	above := filepath.Dir(dir)
	for {
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		above = filepath.Dir(above)
	}
	probe, err := os.MkdirTemp(above, "."+filepath.Base(dir)+".probe-")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}

// target returns the path of the folder, and whether it has files, which only a replacement accepts.
func target(dir string, replace bool) (path string, full bool, err error) {
	if path, err = filepath.Abs(dir); err != nil {
		return "", false, err
	}
	entries, err := os.ReadDir(path)
	switch {
	case err == nil && len(entries) > 0 && !replace:
		return "", false, &fs.PathError{Op: "write", Path: path, Err: ErrNotEmpty}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", false, err
	}
	return path, len(entries) > 0, nil
}

func write(dir string, files []File, replace bool) (err error) {
	ordered, err := check(files)
	if err != nil {
		return err
	}
	dir, full, err := target(dir, replace)
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	prefix := "." + filepath.Base(dir) + ".partial-"
	if err := removeLeftovers(parent, prefix); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return err
	}
	unlock, err := lock(partial)
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	defer func() {
		// After Replace it holds the old files.
		err = errors.Join(err, os.RemoveAll(partial))
		unlock()
	}()
	if err := writeAll(partial, ordered); err != nil {
		return fmt.Errorf("write %s, which is unchanged: %w", dir, err)
	}
	if err := exchange(partial, dir, full); err != nil {
		return fmt.Errorf("write %s, which is unchanged: %w", dir, err)
	}
	return syncFolder(parent)
}

func writeAll(dir string, files []File) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it is only a handle on a folder
	folders := map[string]bool{dir: true}
	for _, file := range files {
		name := filepath.FromSlash(file.Path)
		if err := root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
			return err
		}
		for folder := filepath.Join(dir, filepath.Dir(name)); folder != dir; folder = filepath.Dir(folder) {
			folders[folder] = true
		}
		if err := writeFile(root, name, file); err != nil {
			return err
		}
	}
	for folder := range folders {
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, file File) (err error) {
	opened, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if _, err := opened.Write(file.Content); err != nil {
		return err
	}
	// Independent of the umask.
	if err := opened.Chmod(file.Mode); err != nil {
		return err
	}
	return opened.Sync()
}

func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func lock(folder string) (unlock func(), err error) {
	opened, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(opened.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return func() { _ = opened.Close() }, nil
}

// removeLeftovers removes the folders of crashed runs, which no process has locked.
func removeLeftovers(parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		left := filepath.Join(parent, entry.Name())
		unlock, err := lock(left)
		if err != nil {
			continue // in use by another run, or removed
		}
		err = os.RemoveAll(left)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// File is a file to write.
type File struct {
	// Path is relative to the target folder, with slashes.
	Path    string
	Mode    fs.FileMode
	Content []byte
}

func check(files []File) ([]File, error) {
	ordered := slices.Clone(files)
	slices.SortStableFunc(ordered, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	taken := map[string]bool{}
	for _, file := range ordered {
		if !fs.ValidPath(file.Path) || file.Path == "." {
			return nil, &fs.PathError{Op: "write", Path: file.Path, Err: ErrInvalidPath}
		}
		if file.Mode != file.Mode.Perm() {
			return nil, &fs.PathError{Op: "write", Path: file.Path, Err: ErrInvalidMode}
		}
		if taken[file.Path] {
			return nil, &fs.PathError{Op: "write", Path: file.Path, Err: ErrDuplicate}
		}
		taken[file.Path] = true
	}
	for _, file := range ordered {
		for folder := path.Dir(file.Path); folder != "."; folder = path.Dir(folder) {
			if taken[folder] {
				return nil, &fs.PathError{Op: "write", Path: file.Path, Err: ErrDuplicate}
			}
		}
	}
	return ordered, nil
}
