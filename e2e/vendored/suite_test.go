// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

func TestVendored(t *testing.T) {
	steps.Configure(t)
	suite.Run(t, "vendored", "suite SUITE=vendored")
}

// The first process builds what the clusters need; the others find it.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	needed := []programs.Program{programs.IngressExample, programs.OLMExample}
	for _, module := range framework.AllModules() {
		needed = append(needed, module.Controller(), module.Host())
	}
	Expect(programs.BuildAll(ctx, GinkgoWriter, needed...)).To(Succeed())
}, programs.SkipUpToDateChecks)
