// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

// fixtures are states of embedded clusters with the modules. This command updates them: `go test -C e2e
// ./embeddedtarget -run TestCapture -capture ../../conformance/checks/testdata`.
func fixtures() []string {
	return []string{"none-sno-day2-workers", "cloud-sno-day1-workers", "ha", "arbiter", "two-node", "external"}
}

func fixture(t *testing.T, name string) *checks.State {
	t.Helper()
	file := filepath.Join("testdata", name+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	state := &checks.State{}
	if err := yaml.UnmarshalStrict(text, state); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return state
}

func withOperator(state *checks.State) {
	state.ControllerConfig = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "machine-config-controller"}}
	state.Nodes = slices.DeleteFunc(state.Nodes, func(node corev1.Node) bool { return node.Name != "master-0" })
	state.Missing = nil
	state.KubeletConfigs = append(state.KubeletConfigs, unstructuredKubeletConfig())
	state.Pool = &checks.Pool{
		Name: "master", Labels: map[string]string{"machineconfiguration.openshift.io/mco-built-in": "", "pools.operator.machineconfiguration.openshift.io/master": ""},
		Rendered: "rendered-master-1", ShutdownGracePeriod: "60s",
	}
}

// TestStaticChecks runs all static checks and their controls on correct clusters. Each check must apply to at least one
// of them.
func TestStaticChecks(t *testing.T) {
	passed := map[string]bool{}
	states := map[string]*checks.State{}
	for _, name := range fixtures() {
		states[name] = fixture(t, name)
	}
	states["with a machine-config operator"] = states["none-sno-day2-workers"].DeepCopy()
	withOperator(states["with a machine-config operator"])
	for name, state := range states {
		for _, check := range checks.Catalogue() {
			if check.Tier != checks.Static {
				continue
			}
			result := checks.Execute(t.Context(), check, &checks.Input{State: state, Times: checks.SimulatedTimes()})
			switch result.Status {
			case report.Passed:
				passed[check.ID] = true
			case report.NotApplicable:
			default:
				t.Errorf("%s: %s is %s: %s%s", name, check.ID, result.Status, result.Reason, wrong(result))
			}
		}
	}
	for _, check := range checks.Catalogue() {
		if check.Tier == checks.Static && !passed[check.ID] {
			t.Errorf("%s (%s) applies to none of %v", check.ID, check.Title, slices.Concat(fixtures(), []string{"with a machine-config operator"}))
		}
	}
}

func wrong(result report.Result) string {
	var lines strings.Builder
	for _, e := range result.Evidence {
		if !e.Held {
			fmt.Fprintf(&lines, "\n\t%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	for _, c := range result.Controls {
		if !c.Detected {
			fmt.Fprintf(&lines, "\n\tcontrol %q must %s: %s", c.Name, c.Want, c.Got)
		}
	}
	return lines.String()
}

func TestCatalogue(t *testing.T) {
	if err := checks.Validate(checks.Catalogue()); err != nil {
		t.Error(err)
	}
	if _, err := checks.Lookup("SNO-XYZ-999"); !errors.Is(err, checks.ErrUnknownCheck) {
		t.Errorf("an unknown id: %v", err)
	}
	never := func(*checks.Input) bool { return false }
	good := checks.Catalogue()[0]
	for name, change := range map[string]func(*checks.Check){
		"no id":               func(c *checks.Check) { c.ID = "" },
		"another format":      func(c *checks.Check) { c.ID = "SNO-1" },
		"no title":            func(c *checks.Check) { c.Title = "" },
		"no requirement":      func(c *checks.Check) { c.Requirement.Sentence = "" },
		"no negative control": func(c *checks.Check) { c.Controls = []checks.Control{{MustPass: true, Change: never}} },
		"no positive control": func(c *checks.Check) { c.Controls = []checks.Control{{Change: never}} },
		"no Run":              func(c *checks.Check) { c.Run = nil },
		"disruptive, without a control on a cluster": func(c *checks.Check) { c.Tier = checks.Disruptive },
		"with a record, without one":                 func(c *checks.Check) { c.Recorded = true },
		"a control on a cluster that must pass": func(c *checks.Check) {
			c.Controls = append(slices.Clone(c.Controls), checks.Control{Name: "x", MustPass: true})
		},
		"a control on a cluster without a name":       func(c *checks.Check) { c.Controls = append(slices.Clone(c.Controls), checks.Control{}) },
		"a control on a cluster as the only negative": func(c *checks.Check) { c.Controls = []checks.Control{{Name: "x"}, {MustPass: true, Change: never}} },
	} {
		bad := good
		change(&bad)
		if checks.Validate([]checks.Check{bad}) == nil {
			t.Errorf("%s: it is valid", name)
		}
	}
	if checks.Validate([]checks.Check{good, good}) == nil {
		t.Error("a duplicate id is valid")
	}
	good.Tier, good.Controls = checks.Disruptive, append(slices.Clone(good.Controls), checks.Control{Name: "on a cluster"})
	if err := checks.Validate([]checks.Check{good}); err != nil {
		t.Error(err)
	}
}

// TestKinds makes the change of every control on a copy of each cluster, and compares what it changes with its kind.
func TestKinds(t *testing.T) {
	modules := map[string]*checks.TopologyChange{}
	for _, check := range checks.Catalogue() {
		modules[check.Module] = nil
	}
	records := func(drained bool) *checks.Input {
		operands := &checks.Disruption{Operands: []checks.OperandDisruption{{Name: "operand"}}}
		disruptor := &checks.Disruptor{Results: checks.DisruptionResults{
			Rollout: operands, Eviction: operands, NodeRestart: operands, TopologyChanges: map[string]*checks.TopologyChange{},
			Outage: &checks.Outage{Leases: map[string]string{}}, Upgrade: &checks.Upgrade{Disruption: *operands},
			Drains: []checks.Drain{{Node: "node", Acknowledged: true, Cordoned: drained, Evictable: 2}},
		}}
		if drained {
			disruptor.Results.Drains[0].Evicted = 2
		}
		for module := range modules {
			disruptor.Results.TopologyChanges[module] = &checks.TopologyChange{}
		}
		return &checks.Input{Disruptor: disruptor, CSR: &checks.CSROutcome{}, IdleWrites: &checks.IdleWrites{Wrote: map[string]string{}}}
	}
	for _, name := range fixtures() {
		state := fixture(t, name)
		for _, check := range checks.Catalogue() {
			for _, control := range check.Controls {
				kind := check.KindOf(control)
				if kind == checks.KindCluster || check.NotApplicable != nil && check.NotApplicable(state) != "" {
					continue
				}
				drained := check.ID == "SNO-MCO-002"
				in, unchanged := records(drained), records(drained)
				in.State = state.DeepCopy()
				if !control.Change(in) {
					continue
				}
				stateChanged := !reflect.DeepEqual(in.State, state.DeepCopy())
				recordChanged := !reflect.DeepEqual(in.Disruptor.Results, unchanged.Disruptor.Results) ||
					!reflect.DeepEqual(in.CSR, unchanged.CSR) || !reflect.DeepEqual(in.IdleWrites, unchanged.IdleWrites)
				switch {
				case stateChanged && kind != checks.KindState, recordChanged && kind != checks.KindRecord:
					t.Errorf("%s: %s, %q, is of kind %s, and changes the state: %t, a record: %t", name, check.ID, control.Name, kind, stateChanged, recordChanged)
				case !control.MustPass && !stateChanged && !recordChanged:
					t.Errorf("%s: %s, %q, changes nothing", name, check.ID, control.Name)
				}
			}
		}
	}
}

// A machine-config controller drains whatever is requested; the daemon of a node of a single control plane requests
// none.
func TestDrains(t *testing.T) {
	for id, wants := range map[string]map[report.Status][]checks.Drain{
		"SNO-MCO-001": {
			report.Passed: {{Acknowledged: true}, {NotRequested: true}},
			report.Failed: {{Acknowledged: true, Cordoned: true}, {Acknowledged: true, Evicted: 1}, {}, {NotRequested: true, Cordoned: true}},
		},
		"SNO-MCO-002": {
			report.Passed: {{Acknowledged: true, Cordoned: true, Evicted: 2}},
			report.Failed: {{Acknowledged: true, Cordoned: true}, {Cordoned: true, Evicted: 2}, {NotRequested: true, Acknowledged: true, Cordoned: true, Evicted: 2}},
		},
	} {
		check, err := checks.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		check.NotApplicable, check.MissingInput = nil, nil
		for want, drains := range wants {
			for _, drain := range drains {
				drain.Node, drain.Evictable = "node", 2
				in := &checks.Input{State: &checks.State{}, Disruptor: &checks.Disruptor{Results: checks.DisruptionResults{Drains: []checks.Drain{drain}}}}
				if result := checks.Execute(t.Context(), check, in); result.Status != want {
					t.Errorf("%s: %+v is %s %s %+v %+v, want %s", id, drain, result.Status, result.Reason, result.Evidence, result.Controls, want)
				}
			}
		}
	}
}

// TestExecute: the results of controls determine the status.
func TestExecute(t *testing.T) {
	holds := func(held func(*checks.Input) bool) func(context.Context, *checks.Input) ([]report.Evidence, error) {
		return func(_ context.Context, in *checks.Input) ([]report.Evidence, error) {
			return []report.Evidence{{Object: "o", Field: "f", Want: "w", Got: "g", Held: held(in)}}, nil
		}
	}
	failing := func(err error) func(context.Context, *checks.Input) ([]report.Evidence, error) {
		return func(context.Context, *checks.Input) ([]report.Evidence, error) { return nil, err }
	}
	always := func(*checks.Input) bool { return true }
	noInfrastructure := checks.Control{Name: "negative", Change: func(in *checks.Input) bool { in.State.Infrastructure = nil; return true }}
	nothing := checks.Control{Name: "positive", MustPass: true, Change: always}
	impossible := checks.Control{Name: "impossible", Change: func(*checks.Input) bool { return false }}
	there := func(in *checks.Input) bool { return in.State.Infrastructure != nil }
	for name, test := range map[string]struct {
		check checks.Check
		want  report.Status
	}{
		"it can fail":                         {checks.Check{Run: holds(there), Controls: []checks.Control{noInfrastructure, nothing}}, report.Passed},
		"it cannot fail":                      {checks.Check{Run: holds(always), Controls: []checks.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"no possible negative control":        {checks.Check{Run: holds(there), Controls: []checks.Control{impossible, nothing}}, report.Inconclusive},
		"a positive control fails":            {checks.Check{Run: holds(there), Controls: []checks.Control{noInfrastructure, {MustPass: true, Change: noInfrastructure.Change}}}, report.Inconclusive},
		"it fails":                            {checks.Check{Run: holds(func(*checks.Input) bool { return false })}, report.Failed},
		"no evidence":                         {checks.Check{Run: func(context.Context, *checks.Input) ([]report.Evidence, error) { return nil, nil }}, report.Inconclusive},
		"an error":                            {checks.Check{Run: func(context.Context, *checks.Input) ([]report.Evidence, error) { return nil, errors.New("no") }}, report.Failed},
		"a missing permission":                {checks.Check{Run: failing(fmt.Errorf("read: %w", checks.ErrForbidden))}, report.Inconclusive},
		"the server forbids it":               {checks.Check{Run: failing(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil))}, report.Inconclusive},
		"the cluster prevents it":             {checks.Check{Run: failing(fmt.Errorf("read: %w", checks.ErrInconclusive))}, report.Inconclusive},
		"it does not apply":                   {checks.Check{Run: holds(there), NotApplicable: func(*checks.State) string { return "why" }}, report.NotApplicable},
		"its tier is not selected":            {checks.Check{Run: holds(there), Tier: checks.Scheduled}, report.Skipped},
		"the disruptive tier is not selected": {checks.Check{Run: holds(there), Tier: checks.Disruptive}, report.Skipped},
		"a missing input":                     {checks.Check{Run: holds(there), MissingInput: func(*checks.Input) string { return "why" }}, report.Skipped},
		"its operator is idle":                {checks.Check{Module: "auth", Run: holds(there), Controls: []checks.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"an operator is idle":                 {checks.Check{Module: "topology", Run: holds(there), Controls: []checks.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"another operator is idle":            {checks.Check{Module: "console", Run: holds(there), Controls: []checks.Control{noInfrastructure, nothing}}, report.Passed},
	} {
		in := &checks.Input{State: &checks.State{Infrastructure: &configv1.Infrastructure{}}}
		if strings.Contains(name, "idle") {
			in.IdleOperators = func(context.Context) ([]string, error) { return []string{"auth"}, nil }
		}
		result := checks.Execute(t.Context(), test.check, in)
		if result.Status != test.want || (result.Status != report.Passed && result.Reason == "" && len(result.Evidence) == 0) {
			t.Errorf("%s: %s %q, want %s and a reason", name, result.Status, result.Reason, test.want)
		}
		if in.State.Infrastructure == nil {
			t.Errorf("%s: a control changed what was read", name)
		}
	}
}

// What an interrupted check has found so far is no failure.
func TestExecuteInterrupted(t *testing.T) {
	unheld := []report.Evidence{{Object: "o", Field: "f", Want: "w", Got: "g"}}
	for name, run := range map[string]func(context.Context) ([]report.Evidence, error){
		"error":    func(ctx context.Context) ([]report.Evidence, error) { return nil, ctx.Err() },
		"evidence": func(context.Context) ([]report.Evidence, error) { return unheld, nil },
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		check := checks.Check{Run: func(ctx context.Context, _ *checks.Input) ([]report.Evidence, error) {
			interrupt()
			return run(ctx)
		}}
		result := checks.Execute(ctx, check, &checks.Input{State: &checks.State{}})
		if result.Status != report.Inconclusive || result.Reason != checks.ReasonInterrupted {
			t.Errorf("%s: %s %q", name, result.Status, result.Reason)
		}
	}
}
