// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Update writes a file below root, atomically, unless it has the content and the mode. The new file is always made by
// this call, so it has no other owner and nobody has it open. Its name in the folder is durable after SyncFolders.
func Update(root *os.Root, file File) (changed bool, err error) {
	if _, err := check([]File{file}); err != nil {
		return false, err
	}
	name := filepath.FromSlash(file.Path)
	current, err := root.ReadFile(name)
	if err == nil && bytes.Equal(current, file.Content) {
		info, err := root.Stat(name)
		if err != nil {
			return false, err
		}
		if info.Mode().Perm() == file.Mode {
			return false, nil
		}
		return true, root.Chmod(name, file.Mode)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return false, err
	}
	// The kubelet ignores files whose name begins with a dot.
	partial := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
	if err := root.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := writeFile(root, partial, file); err != nil {
		return false, errors.Join(err, root.Remove(partial))
	}
	return true, root.Rename(partial, name)
}

// SyncFolders makes the names of files durable, and those of the folders that they are in, up to the root.
func SyncFolders(root *os.Root, files ...File) error {
	folders := map[string]bool{}
	for _, file := range files {
		for folder := filepath.Dir(filepath.FromSlash(file.Path)); !folders[folder]; folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	var ordered []string
	for folder := range folders {
		ordered = append(ordered, folder)
	}
	slices.Sort(ordered)
	for _, name := range ordered {
		folder, err := root.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
			return err
		}
	}
	return nil
}
