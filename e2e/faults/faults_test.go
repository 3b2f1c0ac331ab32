// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
)

// The same seed repeats the moments of the faults, so it does not change from run to run.
var (
	seed      = flag.Uint64("seed", 1, "selects the random moments; the same number repeats them")
	killCount = flag.Int("kills", 20, "number of kills")
	badTime   = flag.Duration("bad", 0, "how long the API server is bad; 0 for 20s if there are less than 500 kills, otherwise 10m")
	leaders   = flag.Int("leaders", 0, "number of times with two leaders; 0 for one in twenty kills")
	document  = flag.String("write", "", "Markdown document whose table of faults to update, between its markers")
)

func TestFaults(t *testing.T) {
	suite.Run(t, "faults", fmt.Sprintf("soak N=%d SOAK_FLAGS=-seed=%d", *killCount, *seed))
}

func options() Options {
	const long, one = 500, 20
	o := Options{Kills: *killCount, BadTime: *badTime, Leaders: *leaders, Seed: *seed, Keep: suite.Keep()}
	if o.BadTime == 0 {
		if o.BadTime = 20 * time.Second; o.Kills >= long {
			o.BadTime = 10 * time.Minute
		}
	}
	if o.Leaders == 0 {
		o.Leaders = max(o.Kills/one, 1)
	}
	return o
}

const figures = "figures"

// fault adds a spec on a cluster of its own, whose figures are also reported if it fails.
func fault(text, label string, run func(context.Context, *environment) ([]bench.Row, error)) {
	ginkgo.It(text, ginkgo.Label(label, suite.Smoke), func(ctx ginkgo.SpecContext) {
		// A run of a thousand kills takes hours, and Ginkgo prints what a spec writes at its end.
		log, err := os.Create(filepath.Join(suite.Out(), label+".log"))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		ginkgo.DeferCleanup(log.Close)
		o := options()
		o.Progress = io.MultiWriter(ginkgo.GinkgoWriter, log)
		e, err := start(ctx, o)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		ginkgo.DeferCleanup(e.Stop)
		rows, err := run(ctx, e)
		encoded, encoding := json.Marshal(rows)
		gomega.Expect(encoding).NotTo(gomega.HaveOccurred())
		ginkgo.AddReportEntry(figures, string(encoded), ginkgo.ReportEntryVisibilityNever)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
	})
}

var _ = ginkgo.Describe("Every invariant holds", func() {
	fault("when controllers are killed at random moments", "kills", func(ctx context.Context, e *environment) ([]bench.Row, error) {
		found, err := e.kills(ctx)
		return found.rows(), err
	})
	fault("when the API server is bad", "bad", func(ctx context.Context, e *environment) ([]bench.Row, error) {
		found, err := e.badServer(ctx)
		return found.rows(), err
	})
	fault("when two processes lead", "leaders", func(ctx context.Context, e *environment) ([]bench.Row, error) {
		found, err := e.twoLeaders(ctx)
		return found.rows(), err
	})
})

var _ = ginkgo.SynchronizedBeforeSuite(func(ctx ginkgo.SpecContext) {
	needed := []programs.Program{programs.KubectlSNO}
	for _, module := range framework.AllModules() {
		needed = append(needed, module.Controller())
	}
	for _, module := range framework.Modules() {
		needed = append(needed, module.Host())
	}
	gomega.Expect(programs.BuildAll(ctx, ginkgo.GinkgoWriter, needed...)).To(gomega.Succeed())
}, programs.SkipUpToDateChecks)

var _ = ginkgo.ReportAfterSuite("write the figures", func(all ginkgo.Report) {
	var rows []bench.Row
	for _, spec := range all.SpecReports {
		for _, entry := range spec.ReportEntries {
			var its []bench.Row
			if entry.Name == figures {
				gomega.Expect(json.Unmarshal(fmt.Append(nil, entry.GetRawValue()), &its)).To(gomega.Succeed())
			}
			rows = append(rows, its...)
		}
	}
	gomega.Expect(bench.Print(ginkgo.GinkgoWriter, rows)).To(gomega.Succeed())
	if *document == "" || !all.SuiteSucceeded {
		return
	}
	root, err := programs.Root(context.Background())
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	path := *document
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	before, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	after, err := bench.Faults.Document(before, rows, bench.Machine(), all.SuiteConfig.LabelFilter != "")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(os.WriteFile(path, after, 0o644)).To(gomega.Succeed()) //nolint:gosec // a document
})
