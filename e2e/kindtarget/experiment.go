package kindtarget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Experiment shows something that a simulated node cannot.
type Experiment struct {
	// Name selects it, in lower-case words with dashes.
	Name string
	// Description says what is seen when it goes well, in one sentence without a full stop.
	Description string
	// Scenario is the one that it needs; empty for any.
	Scenario string
	// OwnCluster says that it works on a cluster of its own, and so beside the one before it.
	OwnCluster bool
	// SecondCluster says that it needs nothing of those before it, and so may be done on a second cluster of the same scenario, beside them.
	SecondCluster bool
	// Exclusive says that it loads the machine, or that a loaded machine would spoil what it measures: nothing else that is alone, and no cluster's setting up, is
	// done at the same time.
	Exclusive bool
	// Run does it. It must leave the cluster as it found it, so that others can follow, and returns an error if anything was not as Description says.
	Run func(ctx context.Context, e *Env) error
}

// ErrExperiment says that there is no experiment of a name.
var ErrExperiment = errors.New("no such experiment")

// Select returns those of a list of names, in the order of all; the name "all" means every one.
func Select(all []Experiment, names []string) ([]Experiment, error) {
	if slices.Contains(names, "all") {
		return all, nil
	}
	var known []string
	for _, experiment := range all {
		known = append(known, experiment.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: %q: choose from %s", ErrExperiment, name, strings.Join(append(known, "all"), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Experiment) bool { return !slices.Contains(names, e.Name) }), nil
}

// WriteFigure writes what was measured, as JSON, under a name that ends in .json, into the folder of the figures.
func (e *Env) WriteFigure(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write figures %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(e.Figures, name), append(text, '\n'), 0o644); err != nil { //nolint:gosec // nothing in it is secret
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
