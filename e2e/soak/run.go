// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"

	"github.com/solonode/sno/e2e/bench"
)

// Names returns the names of the runs.
func Names() []string { return []string{"kills"} }

// Run runs the faults on one cluster and returns their figures, also after an error.
func Run(ctx context.Context, o Options) ([]bench.Row, error) {
	e, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer e.Stop()
	figures, err := e.kills(ctx)
	fmt.Println(figures)
	return nil, err
}
