package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selection says which checks to do.
type Selection struct {
	// Tiers to do. Checks of other tiers are skipped, with that as their reason.
	Tiers []Tier
	// IDs, where there are any, are the only checks to do; the others are skipped.
	IDs []string
	// Modules likewise.
	Modules []string
}

// ErrNoMatch says that a selection leaves no check, or names one that does not exist.
var ErrNoMatch = errors.New("no such check")

// Select returns the checks of a catalogue that a selection asks for, in the catalogue's order. Asking for nothing, or for a tier, module or id
// that does not exist, is an error.
func Select(catalogue []Check, selection Selection) ([]Check, error) {
	var errs []error
	for _, tier := range selection.Tiers {
		if !slices.Contains(Tiers(), tier) {
			errs = append(errs, fmt.Errorf("%w: no tier is called %q; there are %v", ErrNoMatch, tier, Tiers()))
		}
	}
	modules, ids := map[string]bool{}, map[string]bool{}
	for _, check := range catalogue {
		modules[check.Module], ids[check.ID] = true, true
	}
	for _, module := range selection.Modules {
		if !modules[module] {
			errs = append(errs, fmt.Errorf("%w: no module is called %q; there are %s", ErrNoMatch, module, modulesOf(catalogue)))
		}
	}
	for _, id := range selection.IDs {
		if !ids[id] {
			errs = append(errs, fmt.Errorf("%w: no check is called %q", ErrNoMatch, id))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var selected []Check
	for _, check := range catalogue {
		if slices.Contains(selection.Tiers, check.Tier) && wanted(selection.Modules, check.Module) && wanted(selection.IDs, check.ID) {
			selected = append(selected, check)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("%w: tiers %v, modules %v and ids %v have none in common", ErrNoMatch, selection.Tiers, selection.Modules, selection.IDs)
	}
	return selected, nil
}

func wanted(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

func modulesOf(catalogue []Check) string {
	var modules []string
	for _, check := range catalogue {
		if !slices.Contains(modules, check.Module) {
			modules = append(modules, check.Module)
		}
	}
	return strings.Join(modules, ", ")
}

// TiersOf are those of some checks, from the mildest to the wildest.
func TiersOf(checks []Check) []Tier {
	var tiers []Tier
	for _, tier := range Tiers() {
		if slices.ContainsFunc(checks, func(check Check) bool { return check.Tier == tier }) {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}
