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

// Lay writes the files that differ below root, and returns their paths. Each is replaced as a whole, so that nobody reads half of one.
// Manifests come last: a kubelet that reads one finds everything that the pod mounts. After an error or a crash, laying the same files
// again finishes the work. Nothing is removed: folders of earlier revisions stay, as they do with operators, until those prune them.
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
		return nil, fmt.Errorf("lay files: %w", err)
	}
	defer tree.Close() //nolint:errcheck // it is only a handle on a folder
	var laid []string
	manifests := len(ordered)
	if i := slices.IndexFunc(ordered, isManifest); i >= 0 {
		manifests = i
	}
	for _, part := range [][]files.File{ordered[:manifests], ordered[manifests:]} {
		folders := map[string]bool{}
		for _, file := range part {
			changed, err := writeIfChanged(tree, file)
			if err != nil {
				return laid, fmt.Errorf("lay %s: %w", path.Join(root, file.Path), err)
			}
			if changed {
				laid = append(laid, file.Path)
			}
			folders[filepath.Dir(filepath.FromSlash(file.Path))] = true
		}
		// Also those in which nothing has changed: a run that was killed may have left names that are not on the disk yet.
		for folder := range folders {
			if err := syncFolder(tree, folder); err != nil {
				return laid, fmt.Errorf("lay files in %s: %w", path.Join(root, folder), err)
			}
		}
	}
	return laid, nil
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
	// The kubelet reads no file whose name begins with a dot.
	partial := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
	if err := write(root, partial, file); err != nil {
		return false, errors.Join(err, root.Remove(partial))
	}
	return true, root.Rename(partial, name)
}

// syncFolder makes new names outlast a power cut: what is written or removed next may rely on them.
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
	// The umask of a shell must not decide the mode.
	return errors.Join(err, f.Chmod(file.Mode), f.Sync(), f.Close())
}
