// SPDX-License-Identifier: Apache-2.0

// Package e2e checks the operator on a real cluster, as an operator's repository runs the conformance suite in its CI.
package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
)

// The checks of ingress and those of all modules that include the router. These tiers do not disrupt the cluster.
var tiers = []catalogue.Tier{catalogue.Static, catalogue.Scheduled}

var _ = suites.Describe(suites.Inputs{Modules: []string{"ingress"}, Tiers: tiers, Target: target, Artifacts: os.Getenv("ARTIFACT_DIR")})

// target returns the cluster of $KUBECONFIG.
func target(ctx context.Context) (cluster.Target, error) {
	return existing.Target(ctx, existing.Options{Tiers: tiers, Progress: ginkgo.GinkgoWriter})
}

func TestSingleNode(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("set $KUBECONFIG to the kubeconfig of a cluster to check")
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := suites.Configuration()
	ginkgo.RunSpecs(t, "ingress on a single node", suite, reporter)
}
