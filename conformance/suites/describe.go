// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

// Inputs configure a suite.
type Inputs struct {
	// Target connects to the cluster or creates one. It is called before the first static or scheduled check, and
	// again before the first disruptive one.
	Target func(context.Context) (cluster.Target, error)
	// Tiers to run; empty for static and scheduled, which do not change the cluster's own objects.
	Tiers []catalogue.Tier
	// Modules and IDs restrict the checks; empty for no restriction.
	Modules []string
	IDs     []string
	// Artifacts is the folder for artifacts of failed checks; empty for none.
	Artifacts string
	// NewRunner is nil for runner.Connect.
	NewRunner func(context.Context, cluster.Target, runner.Selection) (runner.Running, error)
}

// Describe adds a spec for every selected check and returns true. An empty selection adds a spec that fails. Disruptive
// specs are Serial and have their own container. All specs of a container share a runner, which runs them in parallel;
// so they stay in one process of a parallel run.
func Describe(inputs Inputs) bool { return describe(catalogue.All(), inputs) }

// Configuration returns Ginkgo's configuration, with which a filter that selects no spec fails the run.
func Configuration() (types.SuiteConfig, types.ReporterConfig) {
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FailOnEmpty = true
	return suite, reporter
}

func describe(all []catalogue.Check, inputs Inputs) bool {
	if len(inputs.Tiers) == 0 {
		inputs.Tiers = []catalogue.Tier{catalogue.Static, catalogue.Scheduled}
	}
	if inputs.NewRunner == nil {
		inputs.NewRunner = runner.Connect
	}
	chosen, err := runner.Select(all, runner.Selection{Tiers: inputs.Tiers, Modules: inputs.Modules, IDs: inputs.IDs})
	if err != nil {
		return ginkgo.Describe(catalogue.Suite, func() {
			ginkgo.It("has checks", func() { ginkgo.Fail(err.Error()) })
		})
	}
	nonDisruptive, disruptive := runner.Split(chosen)
	// Ginkgo shuffles top-level containers. Inside, the order is that of the source lines of the callers of container:
	// disruptive checks are last.
	return ginkgo.Describe(catalogue.Suite, func() {
		if len(nonDisruptive) > 0 {
			container("undisturbed", inputs, nonDisruptive)
		}
		if len(disruptive) > 0 {
			container("disturbed", inputs, disruptive, ginkgo.Serial)
		}
	})
}

// container adds the specs of one runner. It uses no suite nodes, of which a suite can have only one of each kind.
func container(text string, inputs Inputs, checks []catalogue.Check, decorators ...any) {
	body := func() {
		s := &session{inputs: inputs, checks: checks}
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) { s.start(ctx) })
		ginkgo.AfterAll(func(ctx ginkgo.SpecContext) { s.close(ctx) })
		for _, check := range checks {
			ginkgo.It(check.Text(), ginkgo.Label(check.Labels()...), func(ctx ginkgo.SpecContext) { s.spec(ctx, check) })
		}
	}
	ginkgo.Describe(text, append(decorators, ginkgo.Offset(1), ginkgo.Ordered, ginkgo.ContinueOnFailure, body)...)
}

type session struct {
	inputs    Inputs
	checks    []catalogue.Check
	runner    runner.Running
	stop      context.CancelFunc
	err       error
	collected bool
}

func (s *session) start(ctx context.Context) {
	// The runner continues after this node.
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	var target cluster.Target
	if target, s.err = s.inputs.Target(ctx); s.err != nil {
		return
	}
	if s.runner, s.err = s.inputs.NewRunner(ctx, target, runner.Only(s.checks)); s.err == nil {
		s.err = s.runner.Start(ctx)
	}
}

func (s *session) spec(ctx context.Context, check catalogue.Check) {
	if s.err != nil {
		ginkgo.Fail(s.err.Error())
	}
	// The runner does not observe this context, so an interruption must cancel the runner's own.
	defer context.AfterFunc(ctx, s.stop)()
	result, err := s.runner.Result(ctx, check.ID)
	if err != nil {
		s.collect(ctx, check)
		ginkgo.Fail(err.Error())
	}
	ginkgo.AddReportEntry(check.ID, entry{result}, types.ReportEntryVisibilityFailureOrVerbose)
	switch result.Status {
	case report.Passed:
	case report.Skipped, report.NotApplicable:
		ginkgo.Skip(string(result.Status) + ": " + result.Reason)
	case report.Failed, report.Inconclusive:
		s.collect(ctx, check)
		ginkgo.Fail(result.Text())
	default:
		ginkgo.Fail("the check has the unknown status " + string(result.Status))
	}
}

// collect writes artifacts once, after the first check that failed.
func (s *session) collect(ctx context.Context, check catalogue.Check) {
	if s.inputs.Artifacts == "" || s.collected {
		return
	}
	s.collected = true
	folder := filepath.Join(s.inputs.Artifacts, check.ID)
	if err := s.runner.Collect(ctx, folder); err != nil {
		ginkgo.GinkgoWriter.Printf("collect artifacts into %s: %v\n", folder, err)
	}
}

// close works after an interruption too.
func (s *session) close(ctx context.Context) {
	defer s.stop()
	if s.runner == nil {
		return
	}
	if err := s.runner.Close(context.WithoutCancel(ctx)); err != nil {
		ginkgo.Fail("delete the objects of the checks: " + err.Error())
	}
}

// entry is a result in Ginkgo's report, as text on terminals and as an object in JSON.
type entry struct{ report.Result }

// String is used for terminals.
func (e entry) String() string { return e.Result.Text() }
