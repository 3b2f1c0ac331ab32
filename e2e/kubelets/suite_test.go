// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/extension"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/kind"
)

const (
	// optIn specs run only if their label selects them, because they take long.
	optIn = "opt-in"
	// later is the priority of specs that restart the control-plane node: the next spec waits until controllers lead again.
	later = SpecPriority(-1)

	day2Workers = "none-sno-day2-workers"
	// waitTimeout is for pods to start on a busy machine.
	waitTimeout = 2 * time.Minute
)

var (
	clusterName  = flag.String("name", kind.DefaultName, "prefix of the names of clusters and their containers")
	scenarioName = flag.String("scenario", day2Workers, "scenario of the clusters, with one or three control-plane nodes and no arbiter")
	tiers        = flag.String("tiers", "static,scheduled", "tiers of the conformance suite")
)

func TestKubelets(t *testing.T) {
	SetDefaultEventuallyTimeout(waitTimeout)
	SetDefaultEventuallyPollingInterval(poll / 2)
	EnforceDefaultTimeoutsWhenUsingContexts()
	suite.Run(t, "kubelets", "e2e-kind")
}

// shared is the cluster of this process, and whether it was set up.
var shared struct {
	env   *Env
	ready bool
}

// cluster returns the cluster of this process, which the first spec that needs it creates. Each spec finds it settled,
// with all workers, and every controller leads. If scenarios are named, the spec is skipped on others.
func cluster(ctx context.Context, scenarios ...string) *Env {
	GinkgoHelper()
	if len(scenarios) > 0 && !slices.Contains(scenarios, *scenarioName) {
		Skip(fmt.Sprintf("needs -scenario %v", scenarios))
	}
	if shared.env == nil {
		name := *clusterName
		if process := GinkgoParallelProcess(); process > 1 {
			name = fmt.Sprintf("%s-%d", name, process)
		}
		By("Starting a cluster of real kubelets for " + *scenarioName)
		shared.env = &Env{}
		shared.env.Start(ctx, *scenarioName, name, true)
		By("Waiting until the controllers have settled, before workers join")
		shared.env.WaitSettled(ctx)
		By("The later workers join")
		shared.env.AddDay2Workers(ctx)
		shared.ready = true
	}
	Expect(shared.ready).To(BeTrue(), "the cluster of this process was not set up")
	shared.env.WaitSettled(ctx)
	shared.env.everyControllerLeads(ctx)
	return shared.env
}

// starting bounds the setup of a spec, and with it that of the cluster.
const starting = NodeTimeout(20 * time.Minute)

var _ = AfterSuite(func() {
	if shared.env != nil {
		finish(shared.env)
	}
})

// finish removes a cluster, or with -keep only the processes outside of it.
func finish(e *Env) {
	GinkgoHelper()
	if !suite.Keep() || e.Kind == nil {
		e.Stop()
		return
	}
	e.Detach()
	fmt.Fprintf(os.Stderr, "The cluster is kept: export KUBECONFIG=%s; `make kind-delete NAME=%s` removes it\n", e.Kind.Kubeconfig(), e.Kind.Name())
}

var _ = JustAfterEach(func() {
	if spec := CurrentSpecReport(); shared.env != nil && spec.Failed() && !spec.State.Is(types.SpecStateInterrupted|types.SpecStateAborted) {
		Expect(shared.env.Logs(suite.Artifacts())).To(Succeed())
	}
})

// conformanceReport is the name of the report entry with the folder of a report that receives all figures.
const conformanceReport = "conformance report"

// record adds measurements to the report of the spec, and fails it if a bound was not met.
func record(rows ...suite.Row) {
	GinkgoHelper()
	suite.Require(suite.RealKubelets, rows...)
}

var _ = ReportAfterSuite("figures in the report of the conformance suite", func(all Report) {
	if !slices.ContainsFunc(all.SpecReports, func(spec SpecReport) bool {
		return slices.ContainsFunc(spec.ReportEntries, func(entry types.ReportEntry) bool { return entry.Name == conformanceReport })
	}) {
		return
	}
	reports := suite.Must(report.ReadFiles(filepath.Join(suite.Out(), "report.yaml")))
	for _, row := range suite.Rows(all, suite.RealKubelets) {
		reports[0].Measurements = append(reports[0].Measurements, report.Measurement(row))
	}
	Expect(extension.WriteFolder(suite.Out(), reports[0])).To(Succeed())
})

// within is a measurement that has to be at most the bound.
func within(what string, took, bound time.Duration) suite.Row {
	return suite.Row{What: what, Measured: suite.Seconds(took), Bound: "max " + suite.Seconds(bound), Compared: "-", Held: took <= bound}
}

// nodes returns the names of the nodes, those of the control plane first.
func nodes(e *Env) []string {
	GinkgoHelper()
	return suite.Must(e.Kind.Nodes())
}

// lastWorker returns a worker.
func lastWorker(ctx context.Context, e *Env) *corev1.Node {
	GinkgoHelper()
	names := nodes(e)
	node := suite.Must(e.Kind.Clientset().CoreV1().Nodes().Get(ctx, names[len(names)-1], metav1.GetOptions{}))
	Expect(node.Labels).NotTo(Or(HaveKey(rolePrefix+"control-plane"), HaveKey(rolePrefix+"master")), "the cluster has no worker")
	return node
}

// onNode runs a command on a node, and returns its output.
func onNode(ctx context.Context, c *kind.Cluster, node string, command ...string) string {
	GinkgoHelper()
	return suite.Must(c.Exec(ctx, node, command...))
}
