// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// ErrWaiver is returned for an invalid file of waivers, with the number of the entry.
var ErrWaiver = errors.New("invalid waivers")

// ReadWaivers reads a YAML list of waivers, see the package's documentation. It returns an error if an entry has an
// unknown check, no reason, no date, or is a duplicate.
func ReadWaivers(path string, known []string) ([]Waiver, error) {
	var waivers []Waiver
	data, err := os.ReadFile(path)
	if err == nil {
		data, err = yaml.YAMLToJSONStrict(data)
	}
	if err == nil {
		err = decodeStrict(data, &waivers)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: want a list of id, scenario, why and expires: %w", ErrWaiver, path, err)
	}
	var errs []error
	for i, waiver := range waivers {
		if err := waiver.validate(known, waivers[:i]); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: entry %d (%s): %w", ErrWaiver, path, i+1, waiver.ID, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return waivers, nil
}

func (w Waiver) validate(known []string, before []Waiver) error {
	if !slices.Contains(known, w.ID) {
		return fmt.Errorf("id: unknown check %q", w.ID)
	}
	if w.Why == "" {
		return errors.New("why: it is empty; give the reason of the waiver")
	}
	if _, err := time.Parse(time.DateOnly, w.Expires); err != nil {
		return fmt.Errorf("expires: %q is not a date like 2006-01-02", w.Expires)
	}
	same := func(other Waiver) bool { return other.ID == w.ID && other.Scenario == w.Scenario }
	if i := slices.IndexFunc(before, same); i >= 0 {
		return fmt.Errorf("id: entry %d has the same check and scenario", i+1)
	}
	return nil
}

// Unused are waivers that cover no failure.
type Unused struct {
	Expired []Waiver
	// Stale are for checks that ran in all scenarios of the waiver and did not fail. They can be deleted.
	Stale []Waiver
}

// Apply sets the waivers of all covered failures and removes previous ones. Inconclusive checks cannot be waived,
// because they are faults of the suite.
func Apply(reports []Report, waivers []Waiver, now time.Time) Unused {
	for _, report := range reports {
		for i := range report.Results {
			report.Results[i].Waiver = nil
		}
	}
	var unused Unused
	for _, waiver := range waivers {
		switch {
		case waiver.expired(now):
			unused.Expired = append(unused.Expired, waiver)
		case waiver.apply(reports):
			unused.Stale = append(unused.Stale, waiver)
		}
	}
	return unused
}

func (w Waiver) expired(now time.Time) bool {
	day, err := time.Parse(time.DateOnly, w.Expires)
	return err != nil || !now.UTC().Before(day)
}

// apply reports whether the waiver is stale. It is not if checks were skipped or are missing in the reports.
func (w Waiver) apply(reports []Report) (stale bool) {
	done, failed, skipped := false, false, false
	for _, report := range reports {
		if w.Scenario != "" && w.Scenario != report.Scenario {
			continue
		}
		for i := range report.Results {
			result := &report.Results[i]
			if result.ID != w.ID {
				continue
			}
			switch result.Status {
			case Failed:
				failed = true
				if result.Waiver == nil {
					result.Waiver = &w
				}
			case Skipped:
				skipped = true
			case Passed, Inconclusive, NotApplicable:
				done = true
			}
		}
	}
	return done && !failed && !skipped
}
