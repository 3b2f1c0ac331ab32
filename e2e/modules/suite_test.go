// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"flag"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

var (
	modulesFlag  = flag.String("modules", "", "modules whose checks to run, separated by commas; empty for all")
	tiersFlag    = flag.String("tiers", "", "static, scheduled, disruptive, separated by commas; empty for all that the spec has")
	beforeFlag   = flag.String("before", "", "report of an earlier run to compare with in the page; empty for that of the baseline in the folder of -out")
	waiversFlag  = flag.String("waivers", "", "file with waivers: known failures with an expiry date")
	limit        = flag.Duration("limit", 10*time.Minute, "limit for one cluster")
	realMinReady = flag.Bool("real-min-ready", false, "a router counts as available after 30 seconds as on a real cluster, not after one")
	operators    framework.OperatorFlags
)

func init() { operators.Bind(flag.CommandLine) } //nolint:gochecknoinits // flags of a test

func TestModules(t *testing.T) {
	steps.Configure(t)
	suite.Run(t, "modules", "suite SUITE=modules")
}

// The first process builds what the clusters need; the others find it.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	given := suite.Must(operators.Read())
	needed := []programs.Program{programs.KubectlSNO, programs.SNOTests, programs.Approve}
	for _, variant := range embeddedtarget.Variants() {
		needed = append(needed, variant.Programs(given)...)
	}
	Expect(programs.BuildAll(ctx, GinkgoWriter, needed...)).To(Succeed())
	_, err := runner.Select(catalogue.All(), selection(true))
	Expect(err).NotTo(HaveOccurred(), "-modules and -tiers name what there is")
}, func() { programs.SkipUpToDateChecks() })
