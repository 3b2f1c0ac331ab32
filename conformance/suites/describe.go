package suites

import (
	"context"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/naming"
	"github.com/solonode/sno/conformance/report"
)

// Describe adds a spec for every check that the inputs ask for, and returns true. Inputs that ask for no check at all make a spec that fails and
// says so. Specs of the disruptive tier are Serial and in a container of their own.
//
// The specs of a container share a runner, so they stay in one process of a parallel run. The runner does them side by side.
func Describe(inputs Inputs) bool { return describe(checks.Catalogue(), inputs) }

// Configuration is Ginkgo's, with which a filter that leaves no spec fails the run; Ginkgo's own default is to succeed.
func Configuration() (types.SuiteConfig, types.ReporterConfig) {
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FailOnEmpty = true
	return suite, reporter
}

func describe(catalogue []checks.Check, inputs Inputs) bool {
	if len(inputs.Tiers) == 0 {
		inputs.Tiers = []checks.Tier{checks.Static, checks.Scheduled}
	}
	if inputs.NewRunner == nil {
		inputs.NewRunner = newRunner
	}
	chosen, err := checks.Select(catalogue, checks.Selection{Tiers: inputs.Tiers, Modules: inputs.Modules, IDs: inputs.IDs})
	if err != nil {
		return ginkgo.Describe(naming.Suite, func() {
			ginkgo.It("has checks", func() { ginkgo.Fail(err.Error()) })
		})
	}
	var nonDisruptive, disruptive []checks.Check
	for _, check := range chosen {
		if check.Tier == checks.Disruptive {
			disruptive = append(disruptive, check)
		} else {
			nonDisruptive = append(nonDisruptive, check)
		}
	}
	// Ginkgo shuffles what stands at the top level; what is inside keeps the order of its lines, which are those of the callers of container. The
	// disturbances come last.
	return ginkgo.Describe(naming.Suite, func() {
		if len(nonDisruptive) > 0 {
			container("undisturbed", inputs, nonDisruptive)
		}
		if len(disruptive) > 0 {
			container("disturbed", inputs, disruptive, ginkgo.Serial)
		}
	})
}

// container is one runner and its specs. It takes no suite node, because a suite can have only one of each and the repository may want its own.
func container(text string, inputs Inputs, checks []checks.Check, decorators ...any) {
	body := func() {
		s := &session{inputs: inputs, checks: checks}
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) { s.start(ctx) })
		ginkgo.AfterAll(func(ctx ginkgo.SpecContext) { s.close(ctx) })
		for _, check := range checks {
			ginkgo.It(naming.Text(check), ginkgo.Label(naming.Labels(check)...), func(ctx ginkgo.SpecContext) { s.spec(ctx, check) })
		}
	}
	ginkgo.Describe(text, append(decorators, ginkgo.Offset(1), ginkgo.Ordered, ginkgo.ContinueOnFailure, body)...)
}

// session is the runner of a container.
type session struct {
	inputs Inputs
	checks []checks.Check
	target checks.Target
	runner Runner
	stop   context.CancelFunc
	// err is why there is no runner. Every spec fails with it: a cluster that cannot be looked at is no reason to skip.
	err       error
	collected bool
}

func (s *session) start(ctx context.Context) {
	// What the runner does goes on after this node has ended.
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if s.target, s.err = s.inputs.Target(ctx); s.err != nil {
		return
	}
	if s.target.Times == (checks.Times{}) {
		s.target.Times = checks.RealTimes()
	}
	chosen := checks.Selection{}
	for _, check := range s.checks {
		chosen.IDs = append(chosen.IDs, check.ID)
	}
	chosen.Tiers = checks.TiersOf(s.checks)
	if s.runner, s.err = s.inputs.NewRunner(ctx, s.target, chosen); s.err == nil {
		s.err = s.runner.Start(ctx)
	}
}

func (s *session) spec(ctx context.Context, check checks.Check) {
	if s.err != nil {
		ginkgo.Fail(s.err.Error())
	}
	// The runner does not look at this context while a check runs, so an interruption must reach the one that it has.
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
		ginkgo.Fail(naming.Result(result))
	default:
		ginkgo.Fail("the check ended as " + string(result.Status) + ", which nobody knows")
	}
}

// collect looks at the cluster while it is as the first check that failed has left it.
func (s *session) collect(ctx context.Context, check checks.Check) {
	if s.inputs.Artifacts == "" || s.collected {
		return
	}
	s.collected = true
	folder := filepath.Join(s.inputs.Artifacts, check.ID)
	if err := s.runner.Collect(ctx, folder); err != nil {
		ginkgo.GinkgoWriter.Printf("collecting into %s: %v\n", folder, err)
	}
}

// close also works after an interruption, when the context of the specs is done. Where there is a runner, it takes a cluster that was made for it away.
func (s *session) close(ctx context.Context) {
	defer s.stop()
	if s.runner == nil {
		if s.target.Stop != nil {
			s.target.Stop()
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.target.Times.Cleanup)
	defer cancel()
	if err := s.runner.Close(ctx); err != nil {
		ginkgo.Fail("taking away what the checks have made: " + err.Error())
	}
}

// entry shows a result in Ginkgo's report: as words on a terminal, as it is in JSON.
type entry struct{ report.Result }

// String is what a terminal shows.
func (e entry) String() string { return naming.Result(e.Result) }
