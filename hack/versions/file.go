// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// ErrInvalid is wrapped by every error about the contents of versions.yaml.
var ErrInvalid = errors.New("invalid versions file")

// Leg is one of the two sets of versions.
type Leg string

const (
	// Floor is for modules that others vendor.
	Floor Leg = "floor"
	// Newest is for programs, tests and examples.
	Newest Leg = "newest"
)

// File is hack/versions.yaml.
type File struct {
	// Go is the go directive by leg, for example "1.25.0". No go.mod may have a toolchain line.
	Go map[Leg]string `json:"go"`
	// Legs lists the folders of the modules on each leg, relative to the root.
	Legs map[Leg][]string `json:"legs"`
	// Governed lists prefixes of module paths: a requirement under one of them must be pinned or listed in Unpinned.
	Governed []string `json:"governed"`
	// Pins are the versions.
	Pins []Pin `json:"pins"`
	// Unpinned lists modules under a governed prefix whose version follows from the pinned ones.
	Unpinned []string `json:"unpinned"`
	// Release lists the modules that are released.
	Release Release `json:"release"`
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

// Pin gives one version per leg to a group of modules that are released together.
type Pin struct {
	Modules []string `json:"modules"`
	Floor   string   `json:"floor"`
	Newest  string   `json:"newest"`
}

// Version is the pinned version on a leg.
func (p Pin) Version(leg Leg) string {
	if leg == Floor {
		return p.Floor
	}
	return p.Newest
}

// Read reads, parses and validates a versions file. Unknown keys are errors, so that a typo never unpins a module.
func Read(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse parses and validates the text of a versions file. The name is for errors.
func Parse(name string, data []byte) (*File, error) {
	file := &File{}
	if err := yaml.UnmarshalStrict(data, file); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrInvalid, name, err)
	}
	if err := file.validate(); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrInvalid, name, err)
	}
	return file, nil
}

func (f *File) validate() error {
	for _, leg := range []Leg{Floor, Newest} {
		if f.Go[leg] == "" {
			return fmt.Errorf("go: the %s leg has no version", leg)
		}
	}
	seen := map[string]bool{}
	for _, pin := range f.Pins {
		if len(pin.Modules) == 0 {
			return fmt.Errorf("pins: an entry (floor %q) lists no modules", pin.Floor)
		}
		for _, version := range []string{pin.Floor, pin.Newest} {
			if !semver.IsValid(version) {
				return fmt.Errorf("pins: %s: %q is not a version", pin.Modules[0], version)
			}
		}
		if semver.Compare(pin.Floor, pin.Newest) > 0 {
			return fmt.Errorf("pins: %s: floor %s is above newest %s", pin.Modules[0], pin.Floor, pin.Newest)
		}
		for _, module := range pin.Modules {
			if seen[module] {
				return fmt.Errorf("pins: %s is pinned twice", module)
			}
			seen[module] = true
		}
	}
	for _, module := range f.Unpinned {
		if seen[module] {
			return fmt.Errorf("%s is both pinned and unpinned", module)
		}
	}
	for _, dir := range f.Legs[Floor] {
		if slices.Contains(f.Legs[Newest], dir) {
			return fmt.Errorf("legs: %s is on both legs", dir)
		}
	}
	return f.Release.validate()
}

func (r Release) validate() error {
	if err := CheckVersion(r.Version); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	seen := map[string]bool{}
	for _, dir := range r.Modules() {
		if seen[dir] {
			return fmt.Errorf("release: %s is listed twice", dir)
		}
		seen[dir] = true
	}
	return nil
}

// CheckVersion returns an error unless a release can have the version: a canonical one below v2, whose modules would
// need other paths.
func CheckVersion(version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("%q is not a version such as v0.1.0", version)
	case semver.Compare(version, "v2.0.0-0") >= 0:
		return fmt.Errorf("%s needs module paths that end in /%s", version, semver.Major(version))
	}
	return nil
}

// PinOf returns the version of a pinned module on a leg.
func (f *File) PinOf(module string, leg Leg) (version string, pinned bool) {
	pin, pinned := f.pin(module)
	return pin.Version(leg), pinned
}

// SetRelease returns the text of a versions file with another version of the release, and the same comments.
func SetRelease(text []byte, version string) ([]byte, error) {
	found := releaseVersion.FindAllSubmatchIndex(text, -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%w: has %d lines \"version:\" below \"release:\", want 1", ErrInvalid, len(found))
	}
	return slices.Concat(text[:found[0][2]], []byte(version), text[found[0][3]:]), nil
}

var releaseVersion = regexp.MustCompile(`(?m)^release:\n(?:  .*\n)*?  version: (\S+)`)

// LegOf returns the leg of a module folder; false when versions.yaml does not list it.
func (f *File) LegOf(dir string) (Leg, bool) {
	for _, leg := range []Leg{Floor, Newest} {
		if slices.Contains(f.Legs[leg], dir) {
			return leg, true
		}
	}
	return "", false
}

func (f *File) pin(module string) (Pin, bool) {
	for _, pin := range f.Pins {
		if slices.Contains(pin.Modules, module) {
			return pin, true
		}
	}
	return Pin{}, false
}

func (f *File) governs(module string) bool {
	return !slices.Contains(f.Unpinned, module) &&
		slices.ContainsFunc(f.Governed, func(prefix string) bool { return strings.HasPrefix(module, prefix) })
}
