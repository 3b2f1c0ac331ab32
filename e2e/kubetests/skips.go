// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed skips.yaml
var skipsText []byte

// Kind is the kind of a reason why a test is skipped.
type Kind string

const (
	// OneNode is a difference from a cluster of several nodes.
	OneNode Kind = "one-node"
	// Disturbs is a test that disturbs other tests or the modules on the only node.
	Disturbs Kind = "disturbs"
	// Lacks is a test that needs what the nodes of these clusters lack.
	Lacks Kind = "lacks"
	// Image is a test that needs an image other than agnhost and pause.
	Image Kind = "image"
	// NeedsModules is a test that is not skipped: it passes with the modules on, and fails with them off.
	NeedsModules Kind = "needs-modules"
)

// Kinds returns the kinds of tests that are skipped, in the order of the document.
func Kinds() []Kind { return []Kind{OneNode, Disturbs, Lacks, Image} }

// Skip is a reason why tests are skipped, or why they fail with the modules off.
type Skip struct {
	Kind Kind `json:"kind"`
	// Reason is a sentence. It is empty if Image is set.
	Reason string `json:"reason,omitempty"`
	// Image is the name of the image of kind Image, without its registry and tag.
	Image string `json:"image,omitempty"`
	// Tests are codenames.
	Tests []string `json:"tests"`
}

// ErrSkips is returned for an invalid list of skips.
var ErrSkips = errors.New("invalid skips.yaml")

// Skips returns the skips of this repository.
func Skips() ([]Skip, error) { return parseSkips(skipsText) }

func parseSkips(text []byte) ([]Skip, error) {
	var skips []Skip
	if err := yaml.UnmarshalStrict(text, &skips); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSkips, err)
	}
	return skips, nil
}

// CheckSkips returns an error if a skip has no kind or no reason, or names a test that does not exist or that another
// skip names.
func CheckSkips(all []Test, skips []Skip) error {
	known := map[string]bool{}
	for _, test := range all {
		known[test.Codename] = true
	}
	var errs []error
	kinds, skipped := append(Kinds(), NeedsModules), map[string]bool{}
	for i, skip := range skips {
		switch {
		case !slices.Contains(kinds, skip.Kind):
			errs = append(errs, fmt.Errorf("%w: entry %d has the kind %q, want one of %q", ErrSkips, i, skip.Kind, kinds))
		case (skip.Kind == Image) != (skip.Image != "") || (skip.Kind == Image) == (skip.Reason != ""):
			errs = append(errs, fmt.Errorf("%w: entry %d needs an image if its kind is %s, otherwise a reason", ErrSkips, i, Image))
		case len(skip.Tests) == 0:
			errs = append(errs, fmt.Errorf("%w: entry %d names no test", ErrSkips, i))
		}
		for _, name := range skip.Tests {
			switch {
			case !known[name]:
				errs = append(errs, fmt.Errorf("%w: entry %d: there is no conformance test %q", ErrSkips, i, name))
			case skipped[name]:
				errs = append(errs, fmt.Errorf("%w: entry %d: %q is skipped already", ErrSkips, i, name))
			}
			skipped[name] = true
		}
	}
	return errors.Join(errs...)
}

// Split returns the tests that run and those that are skipped for a reason of one of the kinds.
func Split(all []Test, skips []Skip, kinds ...Kind) (run, skipped []Test) {
	names := map[string]bool{}
	for _, skip := range skips {
		if slices.Contains(kinds, skip.Kind) {
			for _, name := range skip.Tests {
				names[name] = true
			}
		}
	}
	for _, test := range all {
		if names[test.Codename] {
			skipped = append(skipped, test)
		} else {
			run = append(run, test)
		}
	}
	return run, skipped
}
