// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/staticpods"
)

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
		for _, file := range part {
			changed, err := files.Update(tree, file)
			if err != nil {
				return written, fmt.Errorf("write %s: %w", path.Join(root, file.Path), err)
			}
			if changed {
				written = append(written, file.Path)
			}
		}
		// Sync folders without changes too: a killed run may have left names that are not on the disk.
		if err := files.SyncFolders(tree, part...); err != nil {
			return written, fmt.Errorf("sync the folders in %s: %w", root, err)
		}
	}
	return written, nil
}

func isManifest(file files.File) bool { return path.Dir(file.Path) == staticpods.ManifestDir }
