// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/runner"
)

// Inputs configure a suite.
type Inputs struct {
	// Target connects to the cluster or creates one. It is called before the first static or scheduled check, and
	// again before the first disruptive one. A cluster with Target.Stop is deleted after each.
	Target func(context.Context) (cluster.Target, error)
	// Tiers to run; empty for static and scheduled, which do not change the cluster's own objects.
	Tiers []catalogue.Tier
	// Modules and IDs restrict the checks; empty for no restriction.
	Modules []string
	IDs     []string
	// Artifacts is the folder for artifacts of failed checks; empty for none.
	Artifacts string
	// NewRunner is nil for runner.Connect.
	NewRunner func(context.Context, cluster.Target, runner.Selection) (runner.Running, error)
}
