package files

import "io/fs"

// File is a file to write.
type File struct {
	// Path is relative to the folder that is written, with slashes.
	Path    string
	Mode    fs.FileMode
	Content []byte
}
