// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import (
	"os"
	"syscall"
)

// exchange moves a folder to a place. If the place has files, it does not exist for a moment.
func exchange(folder, place string, occupied bool) error {
	if !occupied {
		return syscall.Rename(folder, place)
	}
	old := folder + "-old"
	if err := os.Rename(place, old); err != nil {
		return err
	}
	if err := os.Rename(folder, place); err != nil {
		return err
	}
	return os.Rename(old, folder)
}
