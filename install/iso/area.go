package iso

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kdomanski/iso9660"
)

var (
	// ErrNotISO is in the error of a file that is no ISO, or is truncated.
	ErrNotISO = errors.New("not a readable ISO 9660 image")
	// ErrNoArea is in the error of an ISO that has no area for an Ignition config.
	ErrNoArea = errors.New("no live ISO of CoreOS: it has no area for an Ignition config")
)

const (
	infoPath    = "coreos/igninfo.json"
	defaultPath = "images/ignition.img"
	// The header of old ISOs: the magic, the offset and the length, both little-endian with 64 bits.
	headerOffset = 32768 - 24
	headerMagic  = "coreiso+"
)

// area is where a config goes.
type area struct{ offset, length int64 }

// find returns the area of an image with so many bytes.
func find(image io.ReaderAt, size int64) (area, error) {
	opened, err := iso9660.OpenImage(image)
	if err != nil {
		return area{}, fmt.Errorf("%w: %w", ErrNotISO, err)
	}
	root, err := opened.RootDir()
	if err != nil {
		return area{}, fmt.Errorf("%w: %w", ErrNotISO, err)
	}
	a, err := areaOf(image, root)
	switch {
	case err != nil:
		return area{}, err
	case a.length <= 0 || a.offset < 0 || a.offset+a.length > size:
		return area{}, fmt.Errorf("%w: its area ends at byte %d, and it has %d: it is truncated", ErrNotISO, a.offset+a.length, size)
	}
	return a, nil
}

func areaOf(image io.ReaderAt, root *iso9660.File) (area, error) {
	info := struct {
		File           string
		Offset, Length *int64
	}{File: defaultPath}
	text, err := extent(root, infoPath)
	if err != nil {
		return area{}, err
	}
	if text != nil {
		// More than any such file has; a length of garbage would be read into memory otherwise.
		if err := json.NewDecoder(io.LimitReader(text, 64<<10)).Decode(&info); err != nil {
			return area{}, fmt.Errorf("%w: %s: %w", ErrNotISO, infoPath, err)
		}
	}
	file, err := extent(root, info.File)
	switch {
	case err != nil:
		return area{}, err
	case file == nil && text == nil:
		return fromHeader(image)
	case file == nil:
		return area{}, fmt.Errorf("%w: %s names %s, which is not there", ErrNoArea, infoPath, info.File)
	}
	_, offset, length := file.Outer()
	if info.Offset != nil {
		offset, length = offset+*info.Offset, length-*info.Offset
	}
	if info.Length != nil {
		length = *info.Length
	}
	return area{offset, length}, nil
}

// fromHeader returns the area of an ISO that is older than the files that name it.
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

// extent returns the content of a file, or nil if it is not there.
func extent(dir *iso9660.File, path string) (*io.SectionReader, error) {
	name, rest, below := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	children, err := dir.GetChildren()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotISO, err)
	}
	for _, f := range children {
		if !sameName(f.Name(), name) || f.IsDir() != below {
			continue
		}
		if below {
			return extent(f, rest)
		}
		section, _ := f.Reader().(*io.SectionReader)
		return section, nil
	}
	return nil, nil
}

// sameName reports whether an entry has a name, which without Rock Ridge is in capital letters and has an extension of three.
func sameName(entry, name string) bool {
	if dot := strings.LastIndex(name, "."); dot >= 0 && len(name)-dot > 4 && strings.EqualFold(entry, name[:dot+4]) {
		return true
	}
	return strings.EqualFold(entry, name)
}
