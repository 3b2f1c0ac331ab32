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

// ErrNoSuite says that the suite could not be run on sources without a mutation.
var ErrNoSuite = errors.New("the conformance suite cannot be run without a mutation")

const (
	// suiteGrace is how long the suite may take to take its clusters away.
	suiteGrace = time.Minute
	// suiteParallel is how many clusters run at a time.
	suiteParallel = "2"
	// suiteTool is the module of the suite, in which no mutant is tried.
	suiteTool = "e2e"

	suiteReport, suiteLog = "report.json", "run.log"
)

// shown says on which clusters a module's rules show, two at a time: those of a later step are started for what the earlier ones do not see.
// The names are those of testcluster/scenario.
var shown = map[string][][]string{
	"ingress":       {{"none-sno-day1-worker", "ha"}},
	"console":       {{"none-sno-day1-worker", "ha"}, {"external"}},
	"auth":          {{"none-sno-day1-worker", "ha"}, {"two-node", "external"}},
	"etcdguard":     {{"none-sno-day1-worker", "two-node"}, {"ha", "arbiter"}},
	"machineconfig": {{"none-sno-day1-worker", "ha"}},
	"approver":      {{"none-sno-day1-worker", "ha"}},
	"topology":      {{"none-sno-day1-worker", "ha"}, {"two-node", "external"}},
	"patch":         {{"none-sno-day1-worker", "ha"}},
}

// looking are the modules whose checks look at a mutant of a module. The checks that the suite files under topology look at all modules, and
// every controller is made with the two libraries.
func looking(module string) []string {
	if module == "topology" || module == "patch" {
		return nil
	}
	return []string{"topology", module}
}

// Suite tries mutants on whole clusters: the operators and controllers are built with the mutation, and the conformance suite says what it sees.
type Suite struct {
	// Runner has the workspace and what is selected. Its cache is not used, nor its Parallel.
	Runner *Runner
	// Program is the path of sno-conformance; empty to build it.
	Program string
	// Tiers are those of the suite, separated by commas.
	Tiers string

	// wrong are the checks that are red without a mutation, by cluster.
	wrong map[string][]string
	// sound are the clusters that can be set up without one.
	sound map[string]bool
}

// Run tries the selected mutants of the modules, one after the other, and returns the results in the order of the files. Mutants of modules
// that run on no cluster are left out.
func (s *Suite) Run(ctx context.Context, modules []workspace.Module) ([]Result, error) {
	r := s.Runner
	r.Cache = nil
	if r.now == nil {
		r.now = time.Now
	}
	jobs, err := r.jobs(slices.DeleteFunc(slices.Clone(modules), func(m workspace.Module) bool { return shown[m.Name()] == nil }))
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

// baseline builds everything and finds out what is red anyway.
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
		for _, step := range shown[j.module.Name()] {
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
	s.wrong, s.sound = map[string][]string{}, map[string]bool{}
	for _, cluster := range clusters {
		seen := look(out, cluster)
		s.wrong[cluster] = seen.red
		switch {
		case !seen.reported:
			s.Runner.progress("%s is left out, since it cannot be set up without a mutation: %s\n", cluster, strings.Join(seen.restless, ""))
			continue
		case len(seen.red) > 0:
			s.Runner.progress("red on %s without a mutation, and does not count: %s\n", cluster, strings.Join(seen.red, ", "))
		}
		s.sound[cluster] = true
	}
	if len(s.sound) == 0 {
		return fmt.Errorf("%w: %w\n%s", ErrNoSuite, err, tail(output))
	}
	return nil
}

// checksFor are the modules whose checks look at mutants of these; nil for all.
func checksFor(modules []string) []string {
	var all []string
	for _, m := range modules {
		one := looking(m)
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
	var seen sight
	if err == nil {
		seen, err = s.trySteps(ctx, j, mutated)
	}
	if ctx.Err() != nil {
		return // what was cut short is not tried
	}
	j.result = suiteResult(j, seen, err, time.Since(start))
	known[change] = j.result
	s.Runner.progress("%s: %s %s (%.0f s)\n", j.name(), j.result.Outcome, strings.Join(j.result.By, ", "), j.result.Took.Seconds())
}

// trySteps goes from step to step until the suite sees something.
func (s *Suite) trySteps(ctx context.Context, j *job, mutated string) (sight, error) {
	scratch := filepath.Join(s.Runner.Scratch, fmt.Sprintf("mutant-%d", j.number))
	overlay, err := writeOverlay(scratch, s.Runner.Workspace.Path(j.module.Dir+"/"+j.entry.File), mutated)
	if err != nil {
		return sight{}, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the caller removes the whole scratch folder
	for _, tiers := range s.tiers() {
		for _, clusters := range shown[j.module.Name()] {
			seen, err := s.tryOn(ctx, j, clusters, tiers, scratch, overlay)
			if err != nil || len(seen.red)+len(seen.restless) > 0 {
				return seen, err
			}
		}
	}
	return sight{}, nil
}

// tiers are those to try one after the other: the others take longer than to read, and are only for what reading does not see.
func (s *Suite) tiers() []string {
	if others, ok := strings.CutPrefix(s.Tiers, "static,"); ok {
		return []string{"static", others}
	}
	return []string{s.Tiers}
}

// tryOn lets the suite look at clusters with the mutation.
func (s *Suite) tryOn(ctx context.Context, j *job, clusters []string, tiers, scratch, overlay string) (sight, error) {
	clusters = slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return !s.sound[name] })
	if len(clusters) == 0 {
		return sight{}, nil
	}
	out := filepath.Join(scratch, tiers+" "+strings.Join(clusters, " ")) // no report of another run is taken for one of this
	output, failed := s.conformance(ctx, out, clusters, looking(j.module.Name()), tiers, "-built", "-overlay="+overlay)
	var all sight
	for _, cluster := range clusters {
		seen := look(out, cluster)
		if !seen.reported && len(seen.restless) == 0 {
			return sight{}, fmt.Errorf("%w:\n%s", noReport(output, failed), tail(output))
		}
		seen.red = slices.DeleteFunc(seen.red, func(id string) bool { return slices.Contains(s.wrong[cluster], id) })
		all.add(seen)
	}
	return all, nil
}

// conformance runs the suite and returns what it printed. That it ends with an error is no wonder where checks are red.
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

// noReport says why there is none.
func noReport(output string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && strings.Contains(output, "sno-conformance: build ") {
		return fmt.Errorf("%w: does not compile", ErrDoesNotApply)
	}
	return errNotRun
}

// sight is what the suite has seen of clusters.
type sight struct {
	reported bool
	// red are the ids of checks that failed or are inconclusive.
	red []string
	// restless says of every cluster that did not come up, or to rest, why.
	restless []string
}

func (s *sight) add(other sight) {
	for _, id := range other.red {
		if !slices.Contains(s.red, id) {
			s.red = append(s.red, id)
		}
	}
	s.restless = append(s.restless, other.restless...)
}

// setUp is what the log of a cluster says that could not be set up.
var setUp = regexp.MustCompile(`(?m)^sno-conformance: set up (.+?), sno: (.*)$`)

// look reads what the run of a cluster has left in its folder.
func look(out, cluster string) sight {
	var s sight
	data, err := os.ReadFile(filepath.Join(out, cluster, suiteReport))
	var report struct {
		Results []struct{ ID, Status string }
	}
	if err == nil && json.Unmarshal(data, &report) == nil {
		s.reported = len(report.Results) > 0
	}
	for _, r := range report.Results {
		if r.Status == "failed" || r.Status == "inconclusive" {
			s.red = append(s.red, r.ID)
		}
	}
	if s.reported {
		return s
	}
	log, err := os.ReadFile(filepath.Join(out, cluster, suiteLog))
	if found := setUp.FindSubmatch(log); err == nil && found != nil && !strings.Contains(string(found[2]), context.Canceled.Error()) {
		s.restless = []string{string(found[1]) + ": " + string(found[2])}
	}
	return s
}
