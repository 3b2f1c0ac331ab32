// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// ErrInvalid is wrapped by every error about the contents of versions.yaml.
var ErrInvalid = errors.New("invalid versions file")

// Column is one of the two columns of versions.
type Column string

const (
	// Floor is what the libraries require: a lower bound for who vendors them.
	Floor Column = "floor"
	// Set is what every other go.mod has, and what Go selects in this repository.
	Set Column = "set"
	// Newest is what the libraries must build with, too.
	Newest Column = "newest"
)

// File is hack/versions.yaml.
type File struct {
	// Go is the go directive, for example "1.25.0". No go.mod may have a toolchain line.
	Go map[Column]string `json:"go"`
	// Governed lists prefixes of module paths: a requirement under one of them must be pinned or listed in Unpinned.
	Governed []string `json:"governed"`
	Pins     []Pin    `json:"pins"`
	// Unpinned lists modules under a governed prefix whose version follows from the pinned ones.
	Unpinned []string `json:"unpinned"`
	Release  Release  `json:"release"`
}

// Release has the modules that are released together, by their folders, and their version.
type Release struct {
	Version string `json:"version"`
	// Libraries are for other repositories, and have an API; Programs have none.
	Libraries []string `json:"libraries"`
	Programs  []string `json:"programs"`
}

// Modules returns the folders of all released modules.
func (r Release) Modules() []string { return slices.Concat(r.Libraries, r.Programs) }

// Pin gives versions to a group of modules that are released together. Without Newest the libraries do not need them,
// or Set is the newest; without Floor nothing lower compiles, passes or can be had.
type Pin struct {
	Modules []string `json:"modules"`
	Floor   string   `json:"floor"`
	Set     string   `json:"set"`
	Newest  string   `json:"newest"`
}

// Read reads, parses and validates a versions file.
func Read(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse parses and validates the text of a versions file. Unknown keys are errors, so that a typo never unpins a
// module. The name is for errors.
func Parse(name string, data []byte) (*File, error) {
	file := &File{}
	err := yaml.UnmarshalStrict(data, file)
	if err == nil {
		err = file.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrInvalid, name, err)
	}
	return file, nil
}

func (f *File) validate() error {
	if f.Go[Set] == "" || f.Go[Newest] == "" {
		return errors.New("go needs set and newest")
	}
	seen := map[string]bool{}
	for _, pin := range f.Pins {
		if floor := cmp.Or(pin.Floor, pin.Set); !semver.IsValid(floor) || semver.Compare(floor, pin.Set) > 0 {
			return fmt.Errorf("pins: %v: floor %q and set %q must be versions, in this order", pin.Modules, pin.Floor, pin.Set)
		}
		if newest := cmp.Or(pin.Newest, pin.Set); !semver.IsValid(pin.Set) || !semver.IsValid(newest) || semver.Compare(pin.Set, newest) > 0 {
			return fmt.Errorf("pins: %v: set %q and newest %q must be versions, in this order", pin.Modules, pin.Set, newest)
		}
		for _, module := range pin.Modules {
			if seen[module] || slices.Contains(f.Unpinned, module) {
				return fmt.Errorf("pins: %s is listed twice", module)
			}
			seen[module] = true
		}
	}
	return checkVersion(f.Release.Version)
}

// checkVersion returns an error unless a release can have the version: a canonical one below v2, whose modules would
// need other paths.
func checkVersion(version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("release: %q is not a version such as v0.1.0", version)
	case semver.Compare(version, "v2.0.0-0") >= 0:
		return fmt.Errorf("release: %s needs module paths that end in /%s", version, semver.Major(version))
	}
	return nil
}

// PinOf returns the version of a pinned module in a column.
func (f *File) PinOf(module string, column Column) (version string, pinned bool) {
	for _, pin := range f.Pins {
		if slices.Contains(pin.Modules, module) {
			switch column {
			case Floor:
				return cmp.Or(pin.Floor, pin.Set), true
			case Newest:
				return cmp.Or(pin.Newest, pin.Set), true
			case Set:
			}
			return pin.Set, true
		}
	}
	return "", false
}

// ColumnOf returns the column of the go.mod in a folder.
func (f *File) ColumnOf(dir string) Column {
	if slices.Contains(f.Release.Libraries, dir) {
		return Floor
	}
	return Set
}

func (f *File) governs(module string) bool {
	return !slices.Contains(f.Unpinned, module) &&
		slices.ContainsFunc(f.Governed, func(prefix string) bool { return strings.HasPrefix(module, prefix) })
}
