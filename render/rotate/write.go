// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/staticpods"
)

const folderMode fs.FileMode = 0o700

// WriteChanged writes the files that differ below root, each atomically, and returns their paths. Manifests are last,
// so that a kubelet finds everything that the pod mounts. After an error or a crash, another call completes the work.
// No file is removed: operators prune folders of earlier revisions.
func WriteChanged(root string, list []files.File) ([]string, error) {
	ordered := slices.Clone(list)
	slices.SortStableFunc(ordered, func(a, b files.File) int {
		x, y := isManifest(a), isManifest(b)
		switch {
		case x == y:
			return strings.Compare(a.Path, b.Path)
		case x:
			return 1
		default:
			return -1
		}
	})
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("write files: %w", err)
	}
	defer tree.Close() //nolint:errcheck // it is only a handle on a folder
	var written []string
	manifests := len(ordered)
	if i := slices.IndexFunc(ordered, isManifest); i >= 0 {
		manifests = i
	}
	for _, part := range [][]files.File{ordered[:manifests], ordered[manifests:]} {
		folders := map[string]bool{}
		for _, file := range part {
			changed, err := writeIfChanged(tree, file)
			if err != nil {
				return written, fmt.Errorf("write %s: %w", path.Join(root, file.Path), err)
			}
			if changed {
				written = append(written, file.Path)
			}
			folders[filepath.Dir(filepath.FromSlash(file.Path))] = true
		}
		// Sync folders without changes too: a killed run may have left names that are not on the disk.
		for folder := range folders {
			if err := syncFolder(tree, folder); err != nil {
				return written, fmt.Errorf("sync %s: %w", path.Join(root, folder), err)
			}
		}
	}
	return written, nil
}

func isManifest(file files.File) bool { return path.Dir(file.Path) == staticpods.ManifestDir }

func writeIfChanged(root *os.Root, file files.File) (bool, error) {
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
	if err := write(root, partial, file); err != nil {
		return false, errors.Join(err, root.Remove(partial))
	}
	return true, root.Rename(partial, name)
}

// syncFolder makes new names durable before the next write relies on them.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func write(root *os.Root, name string, file files.File) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, file.Mode)
	if err != nil {
		return err
	}
	_, err = f.Write(file.Content)
	// Independent of the umask.
	return errors.Join(err, f.Chmod(file.Mode), f.Sync(), f.Close())
}
