// SPDX-License-Identifier: Apache-2.0

package files

import "golang.org/x/sys/unix"

// exchange moves a folder to a place, and swaps the two atomically if the place has files.
func exchange(folder, place string, occupied bool) error {
	if occupied {
		return unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE)
	}
	// The system call replaces an empty folder, which os.Rename rejects.
	return unix.Rename(folder, place)
}
