// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

const (
	sector = 2048
	// The limit is larger than any folder of a live ISO, and protects the memory.
	mostOfFolder = 1 << 20
	// recordHead is the size of a folder's record before the name.
	recordHead = 33
)

type file struct {
	offset, length int64
	folder         bool
}

// root returns the root folder in the primary volume descriptor. Libraries for ISO 9660 panic on damaged images.
func root(image io.ReaderAt) (file, error) {
	descriptor := make([]byte, sector)
	// Descriptors begin after the system area of 32 KiB. Those of other types are skipped.
	for i := int64(16); i < 32; i++ {
		if _, err := image.ReadAt(descriptor, i*sector); err != nil {
			return file{}, fmt.Errorf("%w: %w", ErrNotISO, err)
		}
		if string(descriptor[1:6]) != "CD001" {
			break
		}
		if descriptor[0] == 1 {
			return record(descriptor[156:]), nil
		}
	}
	return file{}, fmt.Errorf("%w: it has no primary volume descriptor", ErrNotISO)
}

func record(r []byte) file {
	return file{
		offset: int64(binary.LittleEndian.Uint32(r[2:])) * sector,
		length: int64(binary.LittleEndian.Uint32(r[10:])),
		folder: r[25]&2 != 0,
	}
}

func (f file) open(image io.ReaderAt, path string) (*file, error) {
	name, rest, below := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if f.length > mostOfFolder {
		return nil, fmt.Errorf("%w: a folder has %d bytes, more than %d", ErrNotISO, f.length, mostOfFolder)
	}
	content := make([]byte, f.length)
	if _, err := image.ReadAt(content, f.offset); err != nil {
		return nil, fmt.Errorf("%w: read a folder at byte %d: %w", ErrNotISO, f.offset, err)
	}
	for at := 0; at < len(content); {
		size := int(content[at])
		if size == 0 { // no record crosses the end of a sector
			at += sector - at%sector
			continue
		}
		if size <= recordHead || at+size > len(content) || recordHead+int(content[at+32]) > size {
			return nil, fmt.Errorf("%w: the folder at byte %d is damaged", ErrNotISO, f.offset)
		}
		r := content[at : at+size : at+size]
		at += size
		found := record(r)
		if !sameName(string(r[recordHead:recordHead+int(r[32])]), name) || found.folder != below {
			continue
		}
		if below {
			return found.open(image, rest)
		}
		return &found, nil
	}
	return nil, nil
}

// sameName reports whether an entry has a name. Entries have upper-case letters, a version after a semicolon, and often
// extensions of at most three letters.
func sameName(entry, name string) bool {
	entry, _, _ = strings.Cut(entry, ";")
	entry = strings.TrimSuffix(entry, ".")
	if dot := strings.LastIndex(name, "."); dot >= 0 && len(name)-dot > 4 && strings.EqualFold(entry, name[:dot+4]) {
		return true
	}
	return strings.EqualFold(entry, name)
}
