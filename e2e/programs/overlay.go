// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"golang.org/x/mod/modfile"
)

// ErrOverlay means that a file is not an overlay of sources in modules.
var ErrOverlay = errors.New("not an overlay of `go build -overlay`")

// overlay is other contents for some of the sources.
type overlay struct {
	file    string
	modules []string
	// folder contains its binaries. It depends on the contents of the file.
	folder string
}

// Overlay makes Build replace sources as `go build -overlay` does with the same file. Programs without these sources
// are built as usual; the others are written to a folder next to the file, whose name ends in .programs, and which the
// caller removes. It must be called before the first Build.
func Overlay(file string) error {
	o, err := readOverlay(file)
	if err != nil {
		return fmt.Errorf("overlay %s: %w", file, err)
	}
	built.Lock()
	defer built.Unlock()
	built.overlay = o
	return nil
}

func readOverlay(file string) (*overlay, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller wraps it
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller wraps it
	}
	var replacements struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &replacements); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOverlay, err)
	}
	if len(replacements.Replace) == 0 {
		return nil, fmt.Errorf("%w: it replaces nothing", ErrOverlay)
	}
	o, sum := &overlay{file: file}, sha256.New()
	_, _ = sum.Write(content) // a hash takes everything
	for _, source := range slices.Sorted(maps.Keys(replacements.Replace)) {
		path, err := moduleOf(source)
		if err != nil {
			return nil, err
		}
		o.modules = append(o.modules, path)
		replacement := replacements.Replace[source]
		if replacement == "" {
			continue // the source is deleted
		}
		text, err := os.ReadFile(replacement)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller wraps it
		}
		_, _ = sum.Write(text)
	}
	o.folder = filepath.Join(file+".programs", hex.EncodeToString(sum.Sum(nil)[:6]))
	return o, nil
}

func moduleOf(source string) (string, error) {
	if !filepath.IsAbs(source) {
		return "", fmt.Errorf("%w: the path of %s must be absolute", ErrOverlay, source)
	}
	for dir := filepath.Dir(source); ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil:
			return modfile.ModulePath(content), nil
		case !errors.Is(err, os.ErrNotExist):
			return "", err //nolint:wrapcheck // the caller wraps it
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("%w: %s is not in a module", ErrOverlay, source)
		}
	}
}

// touches reports whether a program that was built without the overlay contains a changed module.
func (o *overlay) touches(binary string) (bool, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false, fmt.Errorf("read the build information of %s: %w", filepath.Base(binary), err)
	}
	return slices.Contains(o.modules, info.Main.Path) ||
		slices.ContainsFunc(info.Deps, func(d *debug.Module) bool { return slices.Contains(o.modules, d.Path) }), nil
}
