package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var (
	// ErrNotEmpty means: the folder exists and has files, which Write keeps.
	ErrNotEmpty = errors.New("the folder is not empty; choose another, or ask for it to be replaced")
	// ErrPath means: a path is not inside the folder.
	ErrInvalidPath = errors.New("not a path inside the folder")
	// ErrTwice means: two files have one path, or one's folder is the other.
	ErrDuplicate = errors.New("used by two files")
	// ErrMode means: a mode says more than permissions.
	ErrInvalidMode = errors.New("a mode with more than permissions")
)

// folderMode is the mode of all folders, since there are keys inside.
const folderMode fs.FileMode = 0o700

// Write writes files into a folder that does not exist or is empty. After an error the folder is as it was before.
func Write(dir string, files []File) error { return write(dir, files, false) }

// Replace is Write for a folder that may have files, which are gone afterwards. Somebody who reads the folder at the same time finds
// either the old files or the new ones.
func Replace(dir string, files []File) error { return write(dir, files, true) }

// Ready returns the error that Write, or Replace, would meet at once: a folder that has files, or one that cannot be made. It leaves
// nothing behind, so that whoever needs time for the files finds it out before.
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

// target returns the path of the folder, and whether it has files, which only a replacement may have.
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
		// After Replace it has the old files.
		err = errors.Join(err, os.RemoveAll(partial))
		unlock()
	}()
	if err := writeAll(partial, ordered); err != nil {
		return fmt.Errorf("write %s, nothing is changed: %w", dir, err)
	}
	if err := exchange(partial, dir, full); err != nil {
		return fmt.Errorf("write %s, nothing is changed: %w", dir, err)
	}
	return syncFolder(parent)
}

// fill writes the files and waits until they are on the disk.
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
	// The umask has no say.
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

// lock holds a folder until it is unlocked or the process ends.
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

// sweep removes what crashed runs left: folders that nobody holds.
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
			continue // of a run that goes on, or gone
		}
		err = os.RemoveAll(left)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
