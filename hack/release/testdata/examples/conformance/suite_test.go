// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
)

var _ = suites.Describe(suites.Inputs{Modules: []string{"ingress"}, Target: target})

func target(ctx context.Context) (checks.Target, error) {
	return existing.Target(ctx, existing.Options{Progress: ginkgo.GinkgoWriter})
}

func TestSingleNode(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("set $KUBECONFIG to the kubeconfig of a cluster to check")
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := suites.Configuration()
	ginkgo.RunSpecs(t, "ingress on a single node", suite, reporter)
}
