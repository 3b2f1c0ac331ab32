// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

// Ginkgo runs its specs once in a process, so each test starts this binary as a child. Environment variables choose the
// case.
const (
	caseVariable = "SUITES_TEST_CASE"
	logVariable  = "SUITES_TEST_LOG"
)

var cases = map[string]func(*fake) Inputs{
	"mixed": func(f *fake) Inputs {
		f.ends = map[string]report.Status{
			"SNO-ING-002": report.Failed, "SNO-ING-003": report.Inconclusive, "SNO-ING-004": report.NotApplicable, "SNO-ETC-002": report.Skipped,
		}
		return Inputs{Tiers: catalogue.Tiers(), Artifacts: "artifacts"}
	},
	"default tiers": func(*fake) Inputs { return Inputs{} },
	"no result":     func(f *fake) Inputs { f.errs = errors.New("the API server is unavailable"); return Inputs{} },
	"no start":      func(f *fake) Inputs { f.start = errors.New("the cluster does not become stable"); return Inputs{} },
	"no target": func(*fake) Inputs {
		return Inputs{Target: func(context.Context) (cluster.Target, error) {
			return cluster.Target{}, errors.New("no kubeconfig")
		}}
	},
	"deletion fails": func(f *fake) Inputs { f.closing = errors.New("a namespace is stuck"); return Inputs{} },
	"no checks":      func(*fake) Inputs { return Inputs{Modules: []string{"ingres"}} },
	"hangs":          func(f *fake) Inputs { f.hang = true; return Inputs{Modules: []string{"etcdguard"}} },
}

func sample() []catalogue.Check {
	check := func(id, module string, tier catalogue.Tier) catalogue.Check {
		return catalogue.Check{
			ID: id, Title: "It works", Module: module, Requirement: catalogue.Requirement{ID: "R-EXAMPLE-5", Sentence: "it works"}, Level: catalogue.Core, Tier: tier,
			Topologies: []string{"SingleReplica"},
		}
	}
	return []catalogue.Check{
		check("SNO-ING-001", "ingress", catalogue.Static), check("SNO-ING-002", "ingress", catalogue.Static),
		check("SNO-ING-003", "ingress", catalogue.Scheduled), check("SNO-ING-004", "ingress", catalogue.Static),
		check("SNO-ETC-001", "etcdguard", catalogue.Static), check("SNO-ETC-002", "etcdguard", catalogue.Disruptive),
	}
}

type fake struct {
	ends                 map[string]report.Status
	errs, start, closing error
	hang                 bool
	running              context.Context //nolint:containedctx // to check that it outlives the node that started it
}

func (f *fake) log(format string, args ...any) {
	file, err := os.OpenFile(os.Getenv(logVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close() //nolint:errcheck // the test finds missing lines
	fmt.Fprintf(file, format+"\n", args...)
}

func (f *fake) Start(ctx context.Context) error { f.running = ctx; return f.start }

func (f *fake) Result(_ context.Context, id string) (report.Result, error) {
	if f.running.Err() != nil {
		return report.Result{}, errors.New("the runner ended with the node that started it")
	}
	if f.hang {
		fmt.Fprintln(os.Stdout, "hanging")
		<-f.running.Done() // the real runner also waits for the check, not for the caller
		f.log("ended")
		return report.Result{}, f.running.Err()
	}
	result := report.Result{ID: id, Status: f.ends[id], Reason: "a reason"}
	if result.Status == "" {
		result.Status = report.Passed
	}
	result.Evidence = []report.Evidence{{Object: "Deployment a/b", Field: "spec.replicas", Want: "1", Got: "2"}}
	return result, f.errs
}

func (f *fake) Report() report.Report { return report.Report{} }

func (f *fake) Collect(_ context.Context, folder string) error {
	f.log("collect %s", folder)
	return nil
}

func (f *fake) Close(ctx context.Context) error {
	f.log("close: %v", ctx.Err())
	return f.closing
}

// R-SUITE-3: an operator's suite has the checks as specs.
func TestSpecs(t *testing.T) {
	inputs, ok := cases[os.Getenv(caseVariable)]
	if !ok {
		t.Skip("other tests run it")
	}
	f := &fake{}
	in := inputs(f)
	in.NewRunner = func(_ context.Context, _ cluster.Target, selection runner.Selection) (runner.Running, error) {
		f.log("run %v %v", selection.Tiers, selection.IDs)
		return f, nil
	}
	if in.Target == nil {
		in.Target = func(context.Context) (cluster.Target, error) { return cluster.Target{}, nil }
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	describe(sample(), in)
	suite, reporter := Configuration()
	ginkgo.RunSpecs(t, "suites", suite, reporter)
}

type child struct {
	states map[string]string
	specs  map[string]types.SpecReport
	log    []string
	failed bool
	output string
}

// run runs a case, and calls onLine with each line of the output.
func run(t *testing.T, name string, onLine func(*exec.Cmd, string), args ...string) child {
	t.Helper()
	folder := t.TempDir()
	log, file := filepath.Join(folder, "log"), filepath.Join(folder, "report.json")
	command := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=^TestSpecs$", "-ginkgo.json-report=" + file}, args...)...)
	command.Env = append(os.Environ(), caseVariable+"="+name, logVariable+"="+log)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c := child{states: map[string]string{}, specs: map[string]types.SpecReport{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		c.output += lines.Text() + "\n"
		if onLine != nil {
			onLine(command, lines.Text())
		}
	}
	c.failed = command.Wait() != nil
	if data, err := os.ReadFile(log); err == nil {
		c.log = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	var reports []types.Report
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &reports)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, c.output)
	}
	for _, spec := range reports[0].SpecReports {
		name := spec.FullText()
		if name == "" {
			name = spec.LeafNodeType.String()
		}
		c.states[name], c.specs[name] = spec.State.String(), spec
	}
	return c
}

func name(id string) string {
	container := "undisturbed"
	if id == "SNO-ETC-002" {
		container = "disturbed"
	}
	return "[sno-conformance] " + container + " [" + id + "] It works"
}

func TestMixed(t *testing.T) {
	c := run(t, "mixed", nil)
	want := map[string]string{
		name("SNO-ING-001"): "passed", name("SNO-ING-002"): "failed", name("SNO-ING-003"): "failed", name("SNO-ING-004"): "skipped",
		name("SNO-ETC-001"): "passed", name("SNO-ETC-002"): "skipped",
	}
	if diff := cmp.Diff(want, c.states); diff != "" || !c.failed {
		t.Errorf("specs (-want +got):\n%s\n%s", diff, c.output)
	}
	failed := c.specs[name("SNO-ING-002")]
	if message := failed.FailureMessage(); !strings.Contains(message, "Deployment a/b") || !strings.Contains(message, "spec.replicas") {
		t.Errorf("the failure has no evidence: %q", message)
	}
	if len(failed.ReportEntries) != 1 || failed.ReportEntries[0].Name != "SNO-ING-002" {
		t.Errorf("the result is not in the report: %v", failed.ReportEntries)
	}
	if message := c.specs[name("SNO-ING-004")].FailureMessage(); message != "notApplicable: a reason" {
		t.Errorf("the spec was skipped because of %q", message)
	}
	labels := []string{"Serial", "tier:disruptive", "module:etcdguard", "level:core", "requirement:R-EXAMPLE-5", "topology:SingleReplica", "Disruptive"}
	if diff := cmp.Diff(labels, c.specs[name("SNO-ETC-002")].Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if !c.specs[name("SNO-ETC-002")].IsSerial || failed.IsSerial {
		t.Error("disruptive specs must be serial, and others not")
	}
	log := strings.Join(c.log, "\n")
	wanted := "run [static scheduled] [SNO-ING-001 SNO-ING-002 SNO-ING-003 SNO-ING-004 SNO-ETC-001]\ncollect artifacts/SNO-ING-002\nclose: <nil>\n" +
		"run [disruptive] [SNO-ETC-002]\nclose: <nil>"
	if diff := cmp.Diff(wanted, log); diff != "" {
		t.Errorf("calls of the runner (-want +got):\n%s", diff)
	}
}

// An error before the checks is the failure of every spec. Disruptive checks must be selected, and an empty selection fails.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		name, filter     string
		failed           bool
		output, everyone string
		specs            int
	}{
		{name: "default tiers", specs: 5},
		{name: "no result", failed: true, everyone: "the API server is unavailable", specs: 5},
		{name: "no start", failed: true, everyone: "the cluster does not become stable", specs: 5},
		{name: "no target", failed: true, everyone: "no kubeconfig", specs: 5},
		{name: "deletion fails", failed: true, output: "a namespace is stuck", specs: 5},
		{name: "no checks", failed: true, output: `unknown module "ingres"`, specs: 1},
		{name: "mixed", filter: "tier:nothing", failed: true, specs: 6},
		{name: "mixed", filter: "module:etcdguard", specs: 6},
	} {
		c := run(t, test.name, nil, "-ginkgo.label-filter="+test.filter)
		if c.failed != test.failed || !strings.Contains(c.output, test.output) || len(c.states) != test.specs {
			t.Errorf("%s %s: failed: %v, %d specs\n%s", test.name, test.filter, c.failed, len(c.states), c.output)
		}
		for spec, state := range c.states {
			if test.everyone != "" && (state != "failed" || !strings.Contains(c.specs[spec].FailureMessage(), test.everyone)) {
				t.Errorf("%s: %s is %s: %q", test.name, spec, state, c.specs[spec].FailureMessage())
			}
		}
	}
}

func TestInterruptionCloses(t *testing.T) {
	c := run(t, "hangs", func(command *exec.Cmd, line string) {
		if line == "hanging" {
			if err := command.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	})
	// The check ends with the interruption, not with Ginkgo's grace period.
	if diff := cmp.Diff([]string{"run [static] [SNO-ETC-001]", "ended", "close: <nil>"}, c.log); diff != "" || !c.failed {
		t.Errorf("failed: %v; calls of the runner %q\n%s", c.failed, c.log, c.output)
	}
}
