// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/hack/workspace"
)

// ErrNoSuite is returned when the suite does not run on sources without a mutation.
var ErrNoSuite = errors.New("the conformance suite cannot be run without a mutation")

const (
	suiteGrace    = time.Minute
	suiteParallel = "2"
	suiteTool     = "e2e"

	suiteReport, suiteLog = "report.json", "run.log"
)

// clustersOf has the clusters on which a module's rules have effects, two at a time: later ones are started for
// mutants that earlier ones do not detect. The names are those of testcluster/scenario.
var clustersOf = map[string][][]string{
	"ingress":       {{"none-sno-day1-worker", "ha"}},
	"console":       {{"none-sno-day1-worker", "ha"}, {"external"}},
	"auth":          {{"none-sno-day1-worker", "ha"}, {"two-node", "external"}},
	"etcdguard":     {{"none-sno-day1-worker", "two-node"}, {"ha", "arbiter"}},
	"machineconfig": {{"none-sno-day1-worker", "ha"}},
	"approver":      {{"none-sno-day1-worker", "ha"}},
	"topology":      {{"none-sno-day1-worker", "ha"}, {"two-node", "external"}},
	"patch":         {{"none-sno-day1-worker", "ha"}},
}

// checkModules returns the modules whose checks may detect a mutant of a module. The checks under topology cover all
// modules, and every controller uses the two libraries.
func checkModules(module string) []string {
	if module == "topology" || module == "patch" {
		return nil
	}
	return []string{"topology", module}
}

// Suite tries mutants on whole clusters: the operators and controllers are built with the mutation, and the conformance
// suite checks them.
type Suite struct {
	// Runner has the workspace and the selection. Its Cache and Parallel are not used.
	Runner  *Runner
	Program string
	// Tiers are those of the suite, separated by commas.
	Tiers string

	// failing are the checks that fail without a mutation, by cluster.
	failing map[string][]string
	usable  map[string]bool
}

// Run tries the selected mutants of the modules, one after the other, and returns the results in the order of the
// files. It skips mutants of modules that run on no cluster.
func (s *Suite) Run(ctx context.Context, modules []workspace.Module) ([]Result, error) {
	r := s.Runner
	r.Cache = nil
	if r.now == nil {
		r.now = time.Now
	}
	jobs, err := r.jobs(slices.DeleteFunc(slices.Clone(modules), func(m workspace.Module) bool { return clustersOf[m.Name()] == nil }))
	if err != nil {
		return nil, err
	}
	if err := s.baseline(ctx, jobs); err != nil {
		return nil, err
	}
	r.started = r.now()
	left, err := r.recall(ctx, jobs)
	if err != nil {
		return nil, err
	}
	known := map[string]Result{}
	for _, j := range left {
		if r.isOver(ctx) {
			break
		}
		s.try(ctx, j, known)
	}
	results := make([]Result, len(jobs))
	for i, j := range jobs {
		results[i] = j.result
	}
	return results, ctx.Err()
}

// baseline builds everything and finds the checks that fail without a mutation.
func (s *Suite) baseline(ctx context.Context, jobs []*job) error {
	if s.Program == "" {
		s.Program = filepath.Join(s.Runner.Scratch, "sno-conformance")
		build := s.Runner.Workspace.Command(ctx, suiteTool, nil, "go", "build", "-o", s.Program, "./cmd/sno-conformance")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %w\n%s", ErrNoSuite, err, tail(string(output)))
		}
	}
	var clusters, modules []string
	for _, j := range jobs {
		for _, step := range clustersOf[j.module.Name()] {
			clusters = append(clusters, step...)
		}
		modules = append(modules, j.module.Name())
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	s.Runner.progress("first without a mutation: %s\n", strings.Join(clusters, ", "))
	out := filepath.Join(s.Runner.Scratch, "without")
	output, err := s.conformance(ctx, out, clusters, checksFor(modules), s.Tiers)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.failing, s.usable = map[string][]string{}, map[string]bool{}
	for _, cluster := range clusters {
		seen := readVerdict(out, cluster)
		s.failing[cluster] = seen.failing
		switch {
		case !seen.reported:
			s.Runner.progress("%s is left out, since it cannot be set up without a mutation: %s\n", cluster, strings.Join(seen.notSettled, ""))
			continue
		case len(seen.failing) > 0:
			s.Runner.progress("fails on %s without a mutation, and is not counted: %s\n", cluster, strings.Join(seen.failing, ", "))
		}
		s.usable[cluster] = true
	}
	if len(s.usable) == 0 {
		return fmt.Errorf("%w: %w\n%s", ErrNoSuite, err, tail(output))
	}
	return nil
}

// checksFor returns the modules whose checks may detect mutants of these; nil for all.
func checksFor(modules []string) []string {
	var all []string
	for _, m := range modules {
		one := checkModules(m)
		if one == nil {
			return nil
		}
		all = append(all, one...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// try tries one mutant, unless one with the same change was tried before: known has those.
func (s *Suite) try(ctx context.Context, j *job, known map[string]Result) {
	start := time.Now()
	mutated, err := j.entry.mutate(s.Runner.Workspace.Path(j.module.Dir))
	change := j.module.Dir + "\n" + j.entry.File + "\n" + mutated
	if same, ok := known[change]; ok && err == nil {
		j.result.Outcome, j.result.By, j.result.Detail = same.Outcome, same.By, same.Detail
		return
	}
	var seen verdict
	if err == nil {
		seen, err = s.trySteps(ctx, j, mutated)
	}
	if ctx.Err() != nil {
		return // interrupted
	}
	j.result = suiteResult(j, seen, err, time.Since(start))
	known[change] = j.result
	s.Runner.progress("%s: %s %s (%.0f s)\n", j.name(), j.result.Outcome, strings.Join(j.result.By, ", "), j.result.Took.Seconds())
}

func (s *Suite) trySteps(ctx context.Context, j *job, mutated string) (verdict, error) {
	scratch := filepath.Join(s.Runner.Scratch, fmt.Sprintf("mutant-%d", j.number))
	overlay, err := writeOverlay(scratch, s.Runner.Workspace.Path(j.module.Dir+"/"+j.entry.File), mutated)
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the caller removes the whole scratch folder
	for _, tiers := range s.tiers() {
		for _, clusters := range clustersOf[j.module.Name()] {
			seen, err := s.tryOn(ctx, j, clusters, tiers, scratch, overlay)
			if err != nil || len(seen.failing)+len(seen.notSettled) > 0 {
				return seen, err
			}
		}
	}
	return verdict{}, nil
}

func (s *Suite) tiers() []string {
	if others, ok := strings.CutPrefix(s.Tiers, "static,"); ok {
		return []string{"static", others}
	}
	return []string{s.Tiers}
}

func (s *Suite) tryOn(ctx context.Context, j *job, clusters []string, tiers, scratch, overlay string) (verdict, error) {
	clusters = slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return !s.usable[name] })
	if len(clusters) == 0 {
		return verdict{}, nil
	}
	out := filepath.Join(scratch, tiers+" "+strings.Join(clusters, " ")) // no other run writes reports there
	output, failed := s.conformance(ctx, out, clusters, checkModules(j.module.Name()), tiers, "-built", "-overlay="+overlay)
	var all verdict
	for _, cluster := range clusters {
		seen := readVerdict(out, cluster)
		if !seen.reported && len(seen.notSettled) == 0 {
			return verdict{}, fmt.Errorf("%w:\n%s", noReport(output, failed), tail(output))
		}
		seen.failing = slices.DeleteFunc(seen.failing, func(id string) bool { return slices.Contains(s.failing[cluster], id) })
		all.add(seen)
	}
	return all, nil
}

// conformance runs the suite and returns its output. The error is expected where checks fail.
func (s *Suite) conformance(ctx context.Context, out string, clusters, modules []string, tiers string, more ...string) (string, error) {
	args := append([]string{
		"-scenarios=" + strings.Join(clusters, ","), "-modules=" + strings.Join(modules, ","), "-tiers=" + tiers, "-parallel=" + suiteParallel, "-out=" + out,
	}, more...)
	cmd := s.Runner.Workspace.Command(ctx, suiteTool, nil, s.Program, args...)
	cmd.WaitDelay = suiteGrace
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.CombinedOutput()
	return string(output), err
}

var errNotRun = errors.New("the suite left no report")

func noReport(output string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && strings.Contains(output, "sno-conformance: build ") {
		return fmt.Errorf("%w: does not compile", ErrDoesNotApply)
	}
	return errNotRun
}

type verdict struct {
	reported bool
	// failing are the ids of checks that failed or are inconclusive.
	failing []string
	// notSettled has the reason for every cluster that could not be set up.
	notSettled []string
}

func (s *verdict) add(other verdict) {
	for _, id := range other.failing {
		if !slices.Contains(s.failing, id) {
			s.failing = append(s.failing, id)
		}
	}
	s.notSettled = append(s.notSettled, other.notSettled...)
}

var setUp = regexp.MustCompile(`(?m)^sno-conformance: set up (.+?), sno: (.*)$`)

func readVerdict(out, cluster string) verdict {
	var s verdict
	data, err := os.ReadFile(filepath.Join(out, cluster, suiteReport))
	var report struct {
		Results []struct{ ID, Status string }
	}
	if err == nil && json.Unmarshal(data, &report) == nil {
		s.reported = len(report.Results) > 0
	}
	for _, r := range report.Results {
		if r.Status == "failed" || r.Status == "inconclusive" {
			s.failing = append(s.failing, r.ID)
		}
	}
	if s.reported {
		return s
	}
	log, err := os.ReadFile(filepath.Join(out, cluster, suiteLog))
	if found := setUp.FindSubmatch(log); err == nil && found != nil && !strings.Contains(string(found[2]), context.Canceled.Error()) {
		s.notSettled = []string{string(found[1]) + ": " + string(found[2])}
	}
	return s
}
