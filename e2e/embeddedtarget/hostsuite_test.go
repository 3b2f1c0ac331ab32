// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/existing"
	"github.com/solonode/sno/conformance/suites"
)

// TestHostSuite is the suite of an operator's repository with all tiers. A spec of e2e/modules runs it, in a process of
// its own.
func TestHostSuite(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("needs $KUBECONFIG")
	}
	rest.SetDefaultWarningHandler(rest.WarningLogger{}) // as in a repository that sets none
	suites.Describe(suites.Inputs{Tiers: catalogue.Tiers(), Target: func(ctx context.Context) (cluster.Target, error) {
		return existing.Target(ctx, existing.Options{Tiers: catalogue.Tiers(), Progress: ginkgo.GinkgoWriter})
	}})
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := suites.Configuration()
	ginkgo.RunSpecs(t, "all of it", suite, reporter)
}
