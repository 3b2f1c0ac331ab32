// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	unknown  = configv1.TopologyMode("Lunar")
)

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{
		ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: configv1.NonePlatformType,
	}
}

// outcome is a short form of the fields that depend on the topology.
type outcome struct {
	Replicas           int32
	Unavailable, Surge string
	// Apart is the anti-affinity: "", "revision", "always", or "empty" for an empty affinity.
	Apart     string
	Selector  string
	Tolerates string
	Budget    string
}

func outcomeOf(deployment *appsv1.Deployment, budget *policyv1.PodDisruptionBudget) outcome {
	pod := deployment.Spec.Template.Spec
	got := outcome{
		Replicas:    *deployment.Spec.Replicas,
		Unavailable: deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.String(),
		Surge:       deployment.Spec.Strategy.RollingUpdate.MaxSurge.String(),
		Budget:      "none",
	}
	short := func(key string) string { return key[strings.LastIndex(key, "/")+1:] }
	var selector, tolerates []string
	for key := range pod.NodeSelector {
		selector = append(selector, short(key))
	}
	slices.Sort(selector)
	for _, toleration := range pod.Tolerations {
		tolerates = append(tolerates, short(toleration.Key))
	}
	got.Selector, got.Tolerates = strings.Join(selector, " "), strings.Join(tolerates, " ")
	switch {
	case pod.Affinity == nil:
	case pod.Affinity.PodAntiAffinity == nil:
		got.Apart = "empty"
	default:
		for _, term := range pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			switch {
			case term.TopologyKey != "kubernetes.io/hostname":
			case len(term.MatchLabelKeys) > 0:
				got.Apart += "revision"
			default:
				got.Apart += "always"
			}
		}
	}
	if budget != nil {
		got.Budget = budget.Name + " " + budget.Spec.MaxUnavailable.String()
	}
	return got
}

// TestStockShape shows U-CON-1, U-CON-2 and U-CON-4.
func TestStockShape(t *testing.T) {
	for _, test := range []struct {
		controlPlane, infrastructure configv1.TopologyMode
		two, onWorkers               bool
	}{
		{ha, ha, true, false},
		{ha, sr, true, false},
		{arbiter, ha, true, false},
		{dual, ha, true, false},
		{sr, ha, false, false},
		{sr, sr, false, false},
		{external, ha, true, true},
		{external, sr, false, true},
		{external, "", false, true},
		{"", ha, false, false},
		{unknown, ha, false, false},
	} {
		for _, o := range DefaultOptions().operands() {
			want := outcome{1, "25%", "25%", "empty", "master", "master unreachable", o.name + " 1"}
			if test.two {
				want = outcome{2, "1", "3", "always", "master", "master unreachable", o.name + " 1"}
			}
			switch {
			case o.name == "downloads" && test.onWorkers:
				want.Selector = "os"
			case o.name == "downloads":
				want.Selector = "master os"
			case test.onWorkers:
				want.Selector = ""
			}
			got := outcomeOf(stockShape(o.baseDeployment(), clusterOf(test.controlPlane, test.infrastructure)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q/%q, %s (-want +got):\n%s", test.controlPlane, test.infrastructure, o.name, diff)
			}
		}
	}
	shaped, _ := stockShape(DefaultOptions().operands()[0].baseDeployment(), clusterOf(ha, ha))
	apart := shaped.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector
	if diff := cmp.Diff("ui", strings.Join(apart.MatchExpressions[0].Values, " ")); diff != "" {
		t.Errorf("the component that is kept apart (-want +got):\n%s", diff)
	}
}

// The module has its own tests; this one checks that it gets its inputs.
func TestVendoredShape(t *testing.T) {
	for _, test := range []struct {
		controlPlane, infrastructure configv1.TopologyMode
		console, downloads           outcome
	}{
		{sr, ha, outcome{1, "25%", "25%", "", "master", "master unreachable", "none"},
			outcome{1, "25%", "25%", "", "master os", "master unreachable", "none"}},
		{dual, sr, outcome{2, "1", "3", "always", "master", "master unreachable", "console 1"},
			outcome{2, "1", "3", "always", "master os", "master unreachable", "downloads 1"}},
		{"", sr, outcome{2, "1", "3", "always", "master", "master unreachable", "console 1"},
			outcome{2, "1", "3", "always", "master os", "master unreachable", "downloads 1"}},
		{external, ha, outcome{2, "1", "3", "always", "", "master unreachable", "console 1"},
			outcome{2, "1", "3", "always", "os", "master unreachable", "downloads 1"}},
		{external, sr, outcome{1, "25%", "25%", "", "", "master unreachable", "none"}, outcome{1, "25%", "25%", "", "os", "master unreachable", "none"}},
	} {
		operands := DefaultOptions().operands()
		got := [2]outcome{}
		for i, o := range operands {
			deployment, budget, err := vendoredShape(o.baseDeployment(), clusterOf(test.controlPlane, test.infrastructure))
			if err != nil {
				t.Fatal(err)
			}
			got[i] = outcomeOf(deployment, budget)
		}
		if diff := cmp.Diff([2]outcome{test.console, test.downloads}, got); diff != "" {
			t.Errorf("%q/%q (-want +got):\n%s", test.controlPlane, test.infrastructure, diff)
		}
	}
}

// With two replicas the module has the stock operator's replicas, rolling update, anti-affinity and budget.
func TestVendoredIsStockWhereTwoAreRight(t *testing.T) {
	for _, controlPlane := range []configv1.TopologyMode{ha, arbiter, dual, external} {
		for _, o := range DefaultOptions().operands() {
			cluster := clusterOf(controlPlane, ha)
			deployment, budget, err := vendoredShape(o.baseDeployment(), cluster)
			if err != nil {
				t.Fatal(err)
			}
			want, stockBudget := stockShape(o.baseDeployment(), cluster)
			if diff := cmp.Diff(want.Spec.Replicas, deployment.Spec.Replicas) + cmp.Diff(want.Spec.Strategy, deployment.Spec.Strategy) +
				cmp.Diff(want.Spec.Template.Spec.Tolerations, deployment.Spec.Template.Spec.Tolerations) +
				cmp.Diff(want.Spec.Template.Spec.NodeSelector, deployment.Spec.Template.Spec.NodeSelector, cmpopts.EquateEmpty()) +
				cmp.Diff(stockBudget.Spec, budget.Spec); diff != "" {
				t.Errorf("%q, %s (-stock +vendored):\n%s", controlPlane, o.name, diff)
			}
			got, stock := outcomeOf(deployment, budget), outcomeOf(want, stockBudget)
			if diff := cmp.Diff(stock, got); diff != "" {
				t.Errorf("%q, %s (-stock +vendored):\n%s", controlPlane, o.name, diff)
			}
		}
	}
	for _, cluster := range []topology.Cluster{{}, {ControlPlane: topology.ReadingOf(sr)}} {
		if deployment, budget, err := vendoredShape(operand{name: "console"}.baseDeployment(), cluster); !errors.Is(err, topology.ErrClusterNotRead) || deployment != nil || budget != nil {
			t.Errorf("of a topology that was not read: %v, %v, %v", deployment, budget, err)
		}
	}
}

// resourceapply compares a hash of the spec, so it must always be the same. A budget must select the pods.
func TestBaseDeployment(t *testing.T) {
	for _, o := range DefaultOptions().operands() {
		base := o.baseDeployment()
		if diff := cmp.Diff(base, o.baseDeployment()); diff != "" {
			t.Errorf("%s differs the second time:\n%s", o.name, diff)
		}
		for kind, shape := range map[string]shape{"stock": Options{Stock: true}.shape(), "vendored": vendoredShape} {
			before := base.DeepCopy()
			_, budget, err := shape(base, clusterOf(ha, ha))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(base.Spec.Template.Labels, budget.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("%s, %s: pods and the selector of the budget (-pods +selector):\n%s", kind, o.name, diff)
			}
			if diff := cmp.Diff(before, base); diff != "" {
				t.Errorf("%s changes the base of %s:\n%s", kind, o.name, diff)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      Options
		operands  string
	}{
		{nil, Options{Downloads: true}, "console downloads"},
		{[]string{"--stock"}, Options{Downloads: true, Stock: true}, "console downloads"},
		{[]string{"--downloads=false"}, Options{}, "console"},
	} {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		got := DefaultOptions()
		got.BindFlags(flags)
		if err := flags.Parse(test.arguments); err != nil {
			t.Errorf("%v: %v", test.arguments, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.arguments, diff)
		}
		var names []string
		for _, o := range got.operands() {
			names = append(names, o.name)
		}
		if diff := cmp.Diff(test.operands, strings.Join(names, " ")); diff != "" {
			t.Errorf("%v, Deployments (-want +got):\n%s", test.arguments, diff)
		}
		_, budget, err := got.shape()(got.operands()[0].baseDeployment(), clusterOf(sr, sr))
		if err != nil {
			t.Fatal(err)
		}
		if is := budget != nil; is != test.want.Stock { // on one node a budget blocks drains
			t.Errorf("%v: shaped by the stock rules: %t", test.arguments, is)
		}
	}
}
