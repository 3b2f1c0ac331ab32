// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"

	"github.com/solonode/sno/e2e/bench"
)

// Names returns the names of the runs.
func Names() []string { return []string{"kills", "bad", "leaders"} }

// Run runs the faults on one cluster and returns their figures, also after an error.
func Run(ctx context.Context, o Options) ([]bench.Row, error) {
	e, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer e.Stop()
	run := func(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }
	if run("kills") {
		figures, err := e.kills(ctx)
		fmt.Println(figures)
		if err != nil {
			return nil, err
		}
	}
	if run("bad") {
		figures, err := e.badServer(ctx)
		fmt.Println(figures)
		if err != nil {
			return nil, err
		}
	}
	if run("leaders") {
		figures, err := e.twoLeaders(ctx)
		fmt.Println(figures)
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
