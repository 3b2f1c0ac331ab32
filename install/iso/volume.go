// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

var (
	// ErrNotISO is in the error of a file that is not an ISO, or is truncated.
	ErrNotISO = errors.New("not a readable ISO 9660 image")
	// ErrNoArea is in the error of an ISO without an area for an Ignition config.
	ErrNoArea = errors.New("not a live ISO of CoreOS: it has no area for an Ignition config")
)

const (
	infoPath    = "coreos/igninfo.json"
	defaultPath = "images/ignition.img"
	// The header of old ISOs has a magic string, offset and length, both with 64 bits, little-endian.
	headerOffset = 32768 - 24
	headerMagic  = "coreiso+"
)

// area is the part of an ISO for a config (U-INS-23).
type area struct{ offset, length int64 }

// find returns the area of an image with a size.
func find(image io.ReaderAt, size int64) (area, error) {
	top, err := root(image)
	if err != nil {
		return area{}, err
	}
	a, err := areaOf(image, top)
	switch {
	case err != nil:
		return area{}, err
	case a.length <= 0 || a.offset < 0 || a.offset > size || a.length > size-a.offset:
		return area{}, fmt.Errorf("%w: its area ends at byte %d, and it has %d: it is truncated", ErrNotISO, a.offset+a.length, size)
	}
	return a, nil
}

func areaOf(image io.ReaderAt, top file) (area, error) {
	info := struct {
		File           string
		Offset, Length *int64
	}{File: defaultPath}
	text, err := top.open(image, infoPath)
	if err != nil {
		return area{}, err
	}
	if text != nil {
		// The limit is larger than any such file, and protects the memory.
		if err := json.NewDecoder(io.NewSectionReader(image, text.offset, min(text.length, 64<<10))).Decode(&info); err != nil {
			return area{}, fmt.Errorf("%w: %s: %w", ErrNotISO, infoPath, err)
		}
	}
	container, err := top.open(image, info.File)
	switch {
	case err != nil:
		return area{}, err
	case container == nil && text == nil:
		return fromHeader(image)
	case container == nil:
		return area{}, fmt.Errorf("%w: %s refers to %s, which does not exist", ErrNoArea, infoPath, info.File)
	}
	a := area{container.offset, container.length}
	if info.Offset != nil {
		a.offset, a.length = a.offset+*info.Offset, a.length-*info.Offset
	}
	if info.Length != nil {
		a.length = *info.Length
	}
	return a, nil
}

// fromHeader returns the area of an old ISO, without igninfo.json.
func fromHeader(image io.ReaderAt) (area, error) {
	header := make([]byte, 24)
	if _, err := image.ReadAt(header, headerOffset); err != nil {
		return area{}, fmt.Errorf("%w: %w", ErrNotISO, err)
	}
	if !bytes.HasPrefix(header, []byte(headerMagic)) {
		return area{}, ErrNoArea
	}
	offset, length := binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:])
	const most = 1 << 40
	if offset > most || length > most {
		return area{}, fmt.Errorf("%w: its header has an area of %d bytes at %d", ErrNotISO, length, offset)
	}
	return area{int64(offset), int64(length)}, nil
}

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
