// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Labels of specs. `make e2e` runs those with Smoke, `make nightly` all of a suite.
const (
	Smoke = "smoke"
	// Long specs take more than a few minutes.
	Long = "long"
)

// First is for the longest specs of a suite: started last, they would have the processors for themselves.
const First = ginkgo.SpecPriority(1)

const gracePeriod = 2 * time.Minute

var (
	keep  = flag.Bool("keep", false, "keep the clusters and their folders at the end of a suite")
	out   = flag.String("out", "", "folder for reports and for logs of failed specs; empty for a new one under the temporary folder")
	write = flag.String("write", "", "document whose tables receive the figures of the suite, such as ../../docs/benchmarks.md")
)

// Must returns the value of a call that must not fail.
func Must[T any](value T, err error) T {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return value
}

// Elapse waits for what only the clock brings, such as the end of a certificate or of a measurement.
func Elapse(ctx context.Context, d time.Duration) {
	ginkgo.GinkgoHelper()
	select {
	case <-ctx.Done():
		ginkgo.Fail("interrupted: " + ctx.Err().Error())
	case <-time.After(d):
	}
}

// Keep reports whether clusters stay at the end of the suite.
func Keep() bool { return *keep }

// Out returns the folder for reports and logs of this run of the suite, which exists.
func Out() string {
	ginkgo.GinkgoHelper()
	if *out == "" {
		folder, err := os.MkdirTemp("", "sno-e2e-")
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		*out = folder
	}
	gomega.Expect(os.MkdirAll(*out, 0o755)).To(gomega.Succeed())
	return *out
}

// Run runs the suite of a package, whose target in the Makefile is named. A failed spec prints the command that
// repeats it.
func Run(t *testing.T, name, target string) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	// The API server warns about the node role of OpenShift.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FailOnEmpty = true
	// After an interruption a spec may have to remove a cluster that is being made.
	suite.GracePeriod = max(suite.GracePeriod, gracePeriod)
	ginkgo.JustAfterEach(func() {
		if spec := ginkgo.CurrentSpecReport(); spec.Failed() {
			ginkgo.GinkgoWriter.Printf("Repeat it: make %s GINKGO_FLAGS=%q\n", target, selection(spec))
		}
	})
	ginkgo.ReportAfterSuite("figures", reportFigures)
	ginkgo.RunSpecs(t, name, suite, reporter)
}

// selection returns the flags that select a spec, also if the target has a filter of its own. A spec in an ordered
// container needs those before it, so its container is selected by its first label.
func selection(spec ginkgo.SpecReport) string {
	if labels := spec.ContainerHierarchyLabels; spec.IsInOrderedContainer && len(labels[0]) > 0 {
		return "--label-filter=" + labels[0][0]
	}
	return "--label-filter= --focus=" + pattern(spec.FullText())
}

// pattern returns a regular expression without blanks that matches a text, for a command line.
func pattern(text string) string {
	quoted := strings.NewReplacer("(", ".", ")", ".", "[", ".", "]", ".", "'", ".", `"`, ".", "`", ".", "$", ".", "*", ".", "+", ".", "?", ".", "|", ".").Replace(text)
	return strings.ReplaceAll(quoted, " ", ".")
}

// Artifacts returns the folder for the logs of the current spec.
func Artifacts() string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, ginkgo.CurrentSpecReport().FullText())
	return filepath.Join(Out(), "artifacts", name)
}
