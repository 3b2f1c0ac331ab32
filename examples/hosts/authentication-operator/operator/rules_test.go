// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/unsupportedconfig"
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

func hostOf(controlPlane, infrastructure configv1.TopologyMode, nodes int32) place {
	return place{nodes: nodes, cluster: topology.Cluster{
		ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: configv1.NonePlatformType,
	}}
}

func certain(t *testing.T) func(shaped, error) shaped {
	t.Helper()
	return func(s shaped, err error) shaped {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// outcome is a short form of the fields that depend on the topology.
type outcome struct {
	Replicas           int32
	Unavailable, Surge string
	// Apart is the anti-affinity: "", "revision" or "always".
	Apart  string
	Pool   string
	Budget string
}

func outcomeOf(deployment *appsv1.Deployment, budget string) outcome {
	pod := deployment.Spec.Template.Spec
	got := outcome{
		Replicas:    *deployment.Spec.Replicas,
		Unavailable: deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.String(),
		Surge:       deployment.Spec.Strategy.RollingUpdate.MaxSurge.String(),
		Budget:      budget,
	}
	for _, pool := range []string{"master", "worker"} {
		if _, ok := pod.NodeSelector["node-role.kubernetes.io/"+pool]; ok {
			got.Pool += pool
		}
	}
	if pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil {
		for _, term := range pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == "kubernetes.io/hostname" && len(term.MatchLabelKeys) > 0 {
				got.Apart += "revision"
			} else if term.TopologyKey == "kubernetes.io/hostname" {
				got.Apart += "always"
			}
		}
	}
	return got
}

func shapedOutcome(s shaped) outcome {
	budget := "none"
	if s.budget != nil {
		budget = s.budget.Name + " " + s.budget.Spec.MaxUnavailable.String()
	}
	if s.keepBudget {
		budget = "kept"
	}
	return outcomeOf(s.deployment, budget)
}

func TestStockShape(t *testing.T) {
	for _, test := range []struct {
		controlPlane      configv1.TopologyMode
		nodes             int32
		server, apiServer outcome
	}{
		{sr, 1, outcome{1, "1", "1", "always", "master", "none"}, outcome{1, "1", "0", "always", "master", "none"}},
		{sr, 3, outcome{3, "2", "3", "always", "master", "none"}, outcome{3, "1", "0", "always", "master", "none"}},
		{dual, 2, outcome{2, "1", "2", "always", "master", "none"}, outcome{2, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{arbiter, 2, outcome{2, "1", "2", "always", "master", "none"}, outcome{2, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{ha, 3, outcome{3, "2", "3", "always", "master", "none"}, outcome{3, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{ha, 1, outcome{1, "1", "1", "always", "master", "none"}, outcome{1, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{external, 0, outcome{0, "1", "0", "always", "master", "none"}, outcome{0, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{unknown, 5, outcome{5, "4", "5", "always", "master", "none"}, outcome{5, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}},
		{"", 3, outcome{3, "2", "3", "always", "master", "none"}, outcome{3, "1", "0", "always", "master", "kept"}},
	} {
		host, rules := hostOf(test.controlPlane, ha, test.nodes), stockRules()
		if diff := cmp.Diff(test.server, shapedOutcome(certain(t)(rules.oauthServer(oauthServer().base(nil), host)))); diff != "" {
			t.Errorf("%q with %d nodes, oauth-openshift (-want +got):\n%s", test.controlPlane, test.nodes, diff)
		}
		if diff := cmp.Diff(test.apiServer, shapedOutcome(certain(t)(rules.oauthAPIServer(oauthAPIServer().base(nil), host)))); diff != "" {
			t.Errorf("%q with %d nodes, oauth-apiserver (-want +got):\n%s", test.controlPlane, test.nodes, diff)
		}
	}
}

// The module has its own tests; this one checks that it gets its inputs.
func TestVendoredRules(t *testing.T) {
	for _, test := range []struct {
		controlPlane, infrastructure configv1.TopologyMode
		nodes                        int32
		server, apiServer            outcome
		minimum                      int32
	}{
		{sr, ha, 1, outcome{1, "0", "1", "", "master", "none"}, outcome{1, "1", "0", "always", "master", "none"}, 1},
		{dual, sr, 2, outcome{2, "1", "2", "revision", "master", "oauth-openshift-pdb 1"}, outcome{2, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}, 2},
		{ha, sr, 3, outcome{3, "2", "3", "revision", "master", "oauth-openshift-pdb 1"}, outcome{3, "1", "0", "always", "master", "oauth-apiserver-pdb 1"}, 3},
		{external, ha, 0, outcome{2, "1", "2", "revision", "worker", "oauth-openshift-pdb 1"}, outcome{2, "1", "0", "always", "worker", "oauth-apiserver-pdb 1"}, 0},
		{external, sr, 0, outcome{1, "0", "1", "", "worker", "none"}, outcome{1, "1", "0", "always", "worker", "none"}, 0},
	} {
		name := fmt.Sprintf("%s/%s with %d nodes", test.controlPlane, test.infrastructure, test.nodes)
		host, rules := hostOf(test.controlPlane, test.infrastructure, test.nodes), vendoredRules()
		if diff := cmp.Diff(test.server, shapedOutcome(certain(t)(rules.oauthServer(oauthServer().base(nil), host)))); diff != "" {
			t.Errorf("%s, oauth-openshift (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.apiServer, shapedOutcome(certain(t)(rules.oauthAPIServer(oauthAPIServer().base(nil), host)))); diff != "" {
			t.Errorf("%s, oauth-apiserver (-want +got):\n%s", name, diff)
		}
		if minimum, err := rules.minimum(host.cluster, nil); err != nil || minimum.Nodes != test.minimum {
			t.Errorf("%s: wait for %d nodes (%v), want %d", name, minimum.Nodes, err, test.minimum)
		}
	}
	minimum, err := vendoredRules().minimum(hostOf(external, ha, 0).cluster, []byte(`{"`+auth.OverrideKey+`":"perhaps"}`))
	if err != nil || minimum.Nodes != 0 || !errors.Is(minimum.Unreadable, unsupportedconfig.ErrUnreadable) {
		t.Errorf("an unreadable override with an External control plane: %+v, %v", minimum, err)
	}
	for _, shape := range []func(*appsv1.Deployment, place) (shaped, error){vendoredRules().oauthServer, vendoredRules().oauthAPIServer} {
		if got, err := shape(oauthServer().base(nil), hostOf(ha, ha, 0)); !errors.Is(err, auth.ErrNoNodes) || got.deployment != nil {
			t.Errorf("no node: %v, want %v", err, auth.ErrNoNodes)
		}
	}
}

// Shaping twice changes nothing, and a change of the rules leaves nothing behind on a live Deployment.
func TestRulesReplaceEachOther(t *testing.T) {
	for _, host := range []place{hostOf(ha, ha, 3), hostOf(sr, sr, 1), hostOf(external, ha, 0)} {
		for _, pair := range [][2]rules{{stockRules(), stockRules()}, {vendoredRules(), vendoredRules()}, {stockRules(), vendoredRules()}, {vendoredRules(), stockRules()}} {
			first := certain(t)(pair[0].oauthServer(oauthServer().base(nil), host)).deployment
			want := certain(t)(pair[1].oauthServer(oauthServer().base(nil), host)).deployment
			if diff := cmp.Diff(want, certain(t)(pair[1].oauthServer(oauthServer().base(first), host)).deployment); diff != "" {
				t.Errorf("oauth-openshift (-want +got):\n%s", diff)
			}
			first = certain(t)(pair[0].oauthAPIServer(oauthAPIServer().base(nil), host)).deployment
			want = certain(t)(pair[1].oauthAPIServer(oauthAPIServer().base(nil), host)).deployment
			if diff := cmp.Diff(want, certain(t)(pair[1].oauthAPIServer(oauthAPIServer().base(first), host)).deployment); diff != "" {
				t.Errorf("oauth-apiserver (-want +got):\n%s", diff)
			}
		}
	}
}

func TestStockReadiness(t *testing.T) {
	const down = 6
	now := time.Unix(1_000_000, 0)
	bad := errors.New("no")
	type verdict struct {
		Available, Progressing, Degraded bool
		Reason                           string
		After                            time.Duration
	}
	for _, test := range []struct {
		name   string
		mode   configv1.TopologyMode
		probes []error
		before auth.WellKnownState
		want   verdict
	}{
		{"all", ha, []error{nil, nil, nil}, auth.WellKnownState{}, verdict{Available: true, Reason: "AsExpected"}},
		{"some", ha, []error{nil, bad, nil}, auth.WellKnownState{}, verdict{Available: true, Reason: "AtLeastOneWellKnownEndpointAvailable", After: 5*time.Minute + time.Second}},
		{"some for long", ha, []error{nil, bad, bad}, auth.WellKnownState{FailingSince: now.Add(-down * time.Minute)},
			verdict{Available: true, Degraded: true, Reason: "AtLeastOneWellKnownEndpointAvailable"}},
		{"none", ha, []error{bad, bad}, auth.WellKnownState{Available: true}, verdict{Reason: "NotReady"}},
		{"the only one restarts: at once", sr, []error{bad}, auth.WellKnownState{Available: true}, verdict{Reason: "NotReady"}},
		{"no API server", sr, nil, auth.WellKnownState{Available: true}, verdict{Reason: "NotReady"}},
	} {
		got := stockRules().readiness(test.mode, test.probes, test.before, now)
		if diff := cmp.Diff(test.want, verdict{got.Available, got.Progressing, got.Degraded, got.Reason, got.After}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	first := stockRules().readiness(ha, []error{nil, bad}, auth.WellKnownState{}, now)
	second := stockRules().readiness(ha, []error{nil, bad}, first.State, now.Add(5*time.Minute+time.Second))
	if first.Degraded || !second.Degraded {
		t.Errorf("degraded %t, then %t; want only after 5 minutes", first.Degraded, second.Degraded)
	}
}

// The name of the OAuth API server's Deployment differs from those of its container, its budget and the label of its
// anti-affinity.
func TestNames(t *testing.T) {
	type names struct{ Deployment, Container, Image, Budget, Label string }
	for _, test := range []struct {
		operand operand
		stock   func(*appsv1.Deployment, place) (shaped, error)
		want    names
	}{
		{oauthServer(), stockRules().oauthServer,
			names{"openshift-authentication/oauth-openshift", "oauth-openshift", "oauth-openshift:1", "oauth-openshift-pdb", "oauth-openshift-anti-affinity"}},
		{oauthAPIServer(), stockRules().oauthAPIServer,
			names{"openshift-oauth-apiserver/apiserver", "oauth-apiserver", "oauth-apiserver:1", "oauth-apiserver-pdb", "oauth-apiserver-anti-affinity"}},
	} {
		base := test.operand.base(nil)
		container := base.Spec.Template.Spec.Containers[0]
		got := names{Deployment: base.Namespace + "/" + base.Name, Container: container.Name, Image: container.Image, Budget: test.operand.budget}
		template := certain(t)(test.stock(base, hostOf(ha, ha, 3))).deployment.Spec.Template
		selected := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels
		for label := range selected {
			if _, own := test.operand.podLabels[label]; !own && template.Labels[label] == selected[label] {
				got.Label = label
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
