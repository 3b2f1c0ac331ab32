// SPDX-License-Identifier: Apache-2.0

package iso

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
