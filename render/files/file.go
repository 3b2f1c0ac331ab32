// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

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
