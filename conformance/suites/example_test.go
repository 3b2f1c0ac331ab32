// SPDX-License-Identifier: Apache-2.0

package suites_test

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
)

// The suite_test.go of an operator that runs only the checks of ingress, on the cluster of $KUBECONFIG. Real suites
// call Describe at the top level, `var _ = suites.Describe(...)`, and RunSpecs in a test with the values of
// [suites.Configuration].
func Example() {
	tiers := []catalogue.Tier{catalogue.Static, catalogue.Scheduled}
	suites.Describe(suites.Inputs{
		Modules:   []string{"ingress"},
		Tiers:     tiers,
		Artifacts: "_artifacts",
		Target: func(ctx context.Context) (cluster.Target, error) {
			return existing.Target(ctx, existing.Options{Tiers: tiers, Progress: ginkgo.GinkgoWriter})
		},
	})
}
