package files

import "golang.org/x/sys/unix"

// exchange puts a folder in the place of another. Where the other one has files, the two change places at once.
func exchange(folder, place string, occupied bool) error {
	if occupied {
		return unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE)
	}
	// The system call replaces an empty folder, which os.Rename refuses.
	return unix.Rename(folder, place)
}
