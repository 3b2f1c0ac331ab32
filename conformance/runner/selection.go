// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/catalogue"
)

// Selection chooses checks. Those that are not selected are skipped.
type Selection struct {
	Tiers []catalogue.Tier
	// IDs and Modules restrict the checks; empty for no restriction.
	IDs     []string
	Modules []string
}

// ErrNoMatch is returned for an empty selection, and for an unknown tier, module or id.
var ErrNoMatch = errors.New("no such check")

// Select returns the selected checks in the catalogue's order.
func Select(all []catalogue.Check, selection Selection) ([]catalogue.Check, error) {
	var errs []error
	for _, tier := range selection.Tiers {
		if !slices.Contains(catalogue.Tiers(), tier) {
			errs = append(errs, fmt.Errorf("%w: unknown tier %q, want one of %v", ErrNoMatch, tier, catalogue.Tiers()))
		}
	}
	modules := catalogue.Modules(all)
	for _, module := range selection.Modules {
		if !slices.Contains(modules, module) {
			errs = append(errs, fmt.Errorf("%w: unknown module %q, want one of %s", ErrNoMatch, module, strings.Join(modules, ", ")))
		}
	}
	for _, id := range selection.IDs {
		if !slices.ContainsFunc(all, func(check catalogue.Check) bool { return check.ID == id }) {
			errs = append(errs, fmt.Errorf("%w: unknown id %q", ErrNoMatch, id))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var selected []catalogue.Check
	for _, check := range all {
		if selection.skipReason(check) == "" {
			selected = append(selected, check)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("%w: tiers %v, modules %v and ids %v have no check in common", ErrNoMatch, selection.Tiers, selection.Modules, selection.IDs)
	}
	return selected, nil
}

func (s Selection) skipReason(check catalogue.Check) string {
	switch {
	case !slices.Contains(s.Tiers, check.Tier):
		return "the " + string(check.Tier) + " tier was not selected"
	case !wanted(s.Modules, check.Module) || !wanted(s.IDs, check.ID):
		return "it was not selected"
	default:
		return ""
	}
}

func wanted(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

// Only returns the selection of exactly these checks.
func Only(checks []catalogue.Check) Selection {
	chosen := Selection{Tiers: TiersOf(checks)}
	for _, check := range checks {
		chosen.IDs = append(chosen.IDs, check.ID)
	}
	return chosen
}

// Split separates disruptive checks from others.
func Split(checks []catalogue.Check) (nonDisruptive, disruptive []catalogue.Check) {
	for _, check := range checks {
		if check.Tier == catalogue.Disruptive {
			disruptive = append(disruptive, check)
		} else {
			nonDisruptive = append(nonDisruptive, check)
		}
	}
	return nonDisruptive, disruptive
}

// TiersOf returns the tiers of checks, the least disruptive first.
func TiersOf(checks []catalogue.Check) []catalogue.Tier {
	var tiers []catalogue.Tier
	for _, tier := range catalogue.Tiers() {
		if slices.ContainsFunc(checks, func(check catalogue.Check) bool { return check.Tier == tier }) {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}
