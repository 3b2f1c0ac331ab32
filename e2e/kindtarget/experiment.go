// SPDX-License-Identifier: Apache-2.0

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

// Experiment is a test that needs real kubelets.
type Experiment struct {
	Name string
	// Description is the expected result, in one sentence without a full stop.
	Description string
	Scenario    string
	// OwnCluster means that it uses its own cluster, and runs in parallel with the one before it.
	OwnCluster bool
	// SecondCluster means that it does not depend on earlier ones, so it may run on a second cluster of the same scenario.
	SecondCluster bool
	// Exclusive means that it loads the machine, or that load would distort its measurements: no other exclusive one and
	// no setup of a cluster runs at the same time.
	Exclusive bool
	// OptIn means that only its name selects it, because it takes long.
	OptIn bool
	// Run runs it. It must restore the cluster, and returns an error if the result differs from Description.
	Run func(ctx context.Context, e *Env) error
}

// ErrExperiment means that no experiment has the name.
var ErrExperiment = errors.New("unknown experiment")

// everything is the name of all experiments that are not OptIn.
const everything = "all"

// Select returns the named experiments in the order of all; the name "all" selects those that are not OptIn.
func Select(all []Experiment, names []string) ([]Experiment, error) {
	var known []string
	for _, experiment := range all {
		known = append(known, experiment.Name)
	}
	for _, name := range names {
		if name != everything && !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: %q: choose from %s", ErrExperiment, name, strings.Join(append(known, everything), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Experiment) bool {
		return !slices.Contains(names, e.Name) && (e.OptIn || !slices.Contains(names, everything))
	}), nil
}

// WriteFigure writes a measurement as JSON to the folder of the figures. The name ends in .json.
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
