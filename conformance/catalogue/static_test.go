// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
)

// fixtures are states of embedded clusters with the modules. This command updates them: `make suite SUITE=modules
// LABELS=capture SUITE_FLAGS=-capture=conformance/catalogue/testdata`.
func fixtures() []string {
	return []string{"none-sno-day2-workers", "cloud-sno-day1-workers", "ha", "arbiter", "two-node", "external"}
}

func fixture(t *testing.T, name string) *State {
	t.Helper()
	file := filepath.Join("testdata", name+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	state := &State{}
	if err := yaml.UnmarshalStrict(text, state); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return state
}

func withOperator(state *State) {
	state.ControllerConfig = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "machine-config-controller"}}
	state.Nodes = slices.DeleteFunc(state.Nodes, func(node corev1.Node) bool { return node.Name != "master-0" })
	state.Missing = nil
	state.KubeletConfigs = append(state.KubeletConfigs, unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": map[string]any{"name": "graceful"},
		"spec": map[string]any{
			"kubeletConfig":             map[string]any{"shutdownGracePeriod": "60s"},
			"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pools.operator.machineconfiguration.openshift.io/master": ""}},
		},
	}})
	state.Pool = &Pool{
		Name: "master", Labels: map[string]string{"machineconfiguration.openshift.io/mco-built-in": "", "pools.operator.machineconfiguration.openshift.io/master": ""},
		Rendered: "rendered-master-1", ShutdownGracePeriod: "60s",
	}
}

// faultOf evaluates a check that must pass, and its controls, without a runner.
func faultOf(check Check, in *Input) string {
	evidence, err := check.Run(in)
	if failure := report.FirstFailure(evidence); err != nil || failure != "" || len(evidence) == 0 {
		return fmt.Sprintf("%d values, %v: %s", len(evidence), err, failure)
	}
	seen := map[bool]bool{}
	for _, control := range check.Controls {
		changed := in.DeepCopy()
		if control.Change == nil || !control.Change(changed) {
			continue
		}
		seen[control.MustPass] = true
		why := check.Excluded(changed.State)
		evidence, err := check.Run(changed)
		if held := report.FirstFailure(evidence) == ""; why != "" || err != nil || len(evidence) == 0 || held != control.MustPass {
			return fmt.Sprintf("control %q, must pass: %t, %q, %v, %+v", control.Name, control.MustPass, why, err, evidence)
		}
	}
	if !seen[true] || !seen[false] {
		return "no control is possible"
	}
	return ""
}

// TestStaticChecks evaluates all static checks and their controls on correct clusters. Each check must apply to at least
// one of them.
func TestStaticChecks(t *testing.T) {
	passed := map[string]bool{}
	states := map[string]*State{}
	for _, name := range fixtures() {
		states[name] = fixture(t, name)
	}
	states["with a machine-config operator"] = states["none-sno-day2-workers"].DeepCopy()
	withOperator(states["with a machine-config operator"])
	for name, state := range states {
		for _, check := range All() {
			if check.Tier != Static || check.Excluded(state) != "" {
				continue
			}
			if fault := faultOf(check, &Input{State: state}); fault != "" {
				t.Errorf("%s: %s: %s", name, check.ID, fault)
			}
			passed[check.ID] = true
		}
	}
	for _, check := range All() {
		if check.Tier == Static && !passed[check.ID] {
			t.Errorf("%s (%s) applies to no cluster", check.ID, check.Title)
		}
	}
	machines := states["none-sno-day2-workers"].DeepCopy()
	machines.Machines = 1
	if why := approverOff().NotApplicable(machines.DeepCopy()); why != "Machines exist, which are the second source" {
		t.Errorf("with Machines SNO-APP-001 does not apply because of %q", why)
	}
}

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: masterRole, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"the key":              {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists}, true},
		"the key and effect":   {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"another effect":       {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"another key":          {corev1.Toleration{Key: controlPlaneRole, Operator: corev1.TolerationOpExists}, false},
		"everything":           {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"the value of nothing": {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual}, true},
		"another value":        {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual, Value: "x"}, false},
	} {
		if got := tolerates([]corev1.Toleration{test.toleration}, taint); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
