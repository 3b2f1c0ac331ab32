// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

// The same seed repeats the moments of the faults, so it does not change from run to run.
var (
	seed      = flag.Uint64("seed", 1, "selects the random moments; the same number repeats them")
	killCount = flag.Int("kills", 20, "number of kills")
	badFlag   = flag.Duration("bad", 0, "how long the API server is bad; 0 for 20s if there are less than 500 kills, otherwise 10m")
	takeOvers = flag.Int("leaders", 0, "number of times with two leaders; 0 for one in twenty kills")
)

func TestFaults(t *testing.T) {
	suite.Run(t, "faults", fmt.Sprintf("soak N=%d SOAK_FLAGS=-seed=%d", *killCount, *seed))
}

var _ = Describe("Every invariant holds", func() {
	fault("when controllers are killed at random moments", "kills", (*environment).kills)
	fault("when the API server is bad", "bad", (*environment).badServer)
	fault("when two processes lead", "leaders", (*environment).twoLeaders)
})

// fault adds a spec on a cluster of its own.
func fault(text, label string, run func(*environment, context.Context)) {
	It(text, Label(label, suite.Smoke), func(ctx SpecContext) {
		// A run of a thousand kills takes hours, and Ginkgo prints what a spec writes at its end.
		log := suite.Must(os.Create(filepath.Join(suite.Out(), label+".log")))
		DeferCleanup(log.Close)
		run(start(ctx, io.MultiWriter(GinkgoWriter, log)), ctx)
	})
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	needed := []programs.Program{programs.KubectlSNO}
	for _, module := range framework.AllModules() {
		needed = append(needed, module.Controller())
	}
	for _, module := range framework.Modules() {
		needed = append(needed, module.Host())
	}
	Expect(programs.BuildAll(ctx, GinkgoWriter, needed...)).To(Succeed())
}, programs.SkipUpToDateChecks)

func numbers(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
