//go:build !linux

package files

import (
	"os"
	"syscall"
)

// exchange puts a folder in the place of another. Where the other one has files there is a moment without any.
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
