// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/rollout"
)

func TestPlacementsPassTheirCheck(t *testing.T) {
	for _, p := range rollout.Placements("ns", "global") {
		if err := rollout.CheckPlacement(p); err != nil {
			t.Error(err)
		}
	}
}

func cluster(claims map[string]string, set ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "east-1", Labels: map[string]string{}}}
	for _, label := range set {
		c.Labels[label] = ""
	}
	for name, value := range claims {
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
	return c
}

// selects reports whether the only predicate selects the cluster: like the placement controller, which matches claims as
// if they were labels.
func selects(t *testing.T, p *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) bool {
	t.Helper()
	if len(p.Spec.Predicates) != 1 {
		t.Fatalf("%s has %d predicates", p.Name, len(p.Spec.Predicates))
	}
	selector, claims := p.Spec.Predicates[0].RequiredClusterSelector, labels.Set{}
	for _, claim := range c.Status.ClusterClaims {
		claims[claim.Name] = claim.Value
	}
	byLabel, err := metav1.LabelSelectorAsSelector(&selector.LabelSelector)
	if err != nil {
		t.Fatal(err)
	}
	byClaim, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: selector.ClaimSelector.MatchExpressions})
	if err != nil {
		t.Fatal(err)
	}
	return byLabel.Matches(labels.Set(c.Labels)) && byClaim.Matches(claims)
}

func TestWhatPlacementsSelect(t *testing.T) {
	single := map[string]string{fleet.ClaimControlPlane: "SingleReplica"}
	workers := func(n string) map[string]string {
		return map[string]string{fleet.ClaimControlPlane: "SingleReplica", fleet.ClaimWorkers: n}
	}
	for name, c := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		want    string
	}{
		"single node":            {cluster(single), rollout.SingleNodes},
		"without workers":        {cluster(workers("0")), rollout.SingleNodes},
		"with workers":           {cluster(workers("2")), rollout.SingleNodes + " " + rollout.SingleNodesWithWorkers},
		"canary":                 {cluster(single, fleet.CanaryLabel), rollout.SingleNodes + " " + rollout.Canaries},
		"opted out":              {cluster(workers("2"), fleet.CanaryLabel, fleet.OptOutLabel), ""},
		"highly available":       {cluster(map[string]string{fleet.ClaimControlPlane: "HighlyAvailable"}, fleet.CanaryLabel), ""},
		"no OpenShift, no claim": {cluster(nil, fleet.CanaryLabel), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range rollout.Placements("ns", "global") {
				if selects(t, p, c.cluster) {
					got = append(got, p.Name)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckPlacementRefuses(t *testing.T) {
	seconds := int64(300)
	selector := func(p *clusterv1beta1.Placement) *clusterv1beta1.ClusterSelector {
		return &p.Spec.Predicates[0].RequiredClusterSelector
	}
	for name, c := range map[string]struct {
		change func(*clusterv1beta1.Placement)
		want   error
		text   string
	}{
		"no tolerations":    {func(p *clusterv1beta1.Placement) { p.Spec.Tolerations = nil }, rollout.ErrTolerations, clusterv1.ManagedClusterTaintUnreachable},
		"only unreachable":  {func(p *clusterv1beta1.Placement) { p.Spec.Tolerations = p.Spec.Tolerations[:1] }, rollout.ErrTolerations, clusterv1.ManagedClusterTaintUnavailable},
		"for five minutes":  {func(p *clusterv1beta1.Placement) { p.Spec.Tolerations[0].TolerationSeconds = &seconds }, rollout.ErrTolerations, "without tolerationSeconds"},
		"of another effect": {func(p *clusterv1beta1.Placement) { p.Spec.Tolerations[0].Effect = clusterv1.TaintEffectPreferNoSelect }, rollout.ErrTolerations, "Exists"},
		"no predicates":     {func(p *clusterv1beta1.Placement) { p.Spec.Predicates = nil }, rollout.ErrSelectsAll, "spec.predicates"},
		"no claim":          {func(p *clusterv1beta1.Placement) { selector(p).ClaimSelector.MatchExpressions = nil }, rollout.ErrSelectsAll, "spec.predicates[0]"},
		"an alternative": {func(p *clusterv1beta1.Placement) {
			p.Spec.Predicates = append(p.Spec.Predicates, clusterv1beta1.ClusterPredicate{})
		}, rollout.ErrSelectsAll, "spec.predicates[1]"},
		"claim exists": {func(p *clusterv1beta1.Placement) {
			selector(p).ClaimSelector.MatchExpressions[0].Operator = metav1.LabelSelectorOpExists
		}, rollout.ErrSelectsAll, "in SingleReplica"},
		"opt-out is ignored": {func(p *clusterv1beta1.Placement) { selector(p).LabelSelector.MatchExpressions = nil }, rollout.ErrOptOut, fleet.OptOutLabel},
	} {
		t.Run(name, func(t *testing.T) {
			p := rollout.Placements("ns", "global")[0]
			c.change(p)
			if err := rollout.CheckPlacement(p); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
	p := rollout.Placements("ns", "global")[0]
	p.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	if err := rollout.CheckPlacement(p); err != nil {
		t.Errorf("a toleration of all taints: %v", err)
	}
}

func groups() []rollout.Group {
	return []rollout.Group{
		{Namespace: "ns", Placement: rollout.SingleNodes, Configuration: "sno-1", Limits: rollout.DefaultLimits},
		{Namespace: "ns", Placement: rollout.Canaries, Configuration: "sno-2", Limits: rollout.DefaultLimits},
	}
}

func TestAddOnPassesItsCheck(t *testing.T) {
	if err := rollout.CheckAddOn(rollout.AddOn(groups()...)); err != nil {
		t.Error(err)
	}
}

func TestCheckAddOnRefuses(t *testing.T) {
	progressive := func(a *addonv1alpha1.ClusterManagementAddOn) *clusterv1alpha1.RolloutProgressive {
		return a.Spec.InstallStrategy.Placements[1].RolloutStrategy.Progressive
	}
	for name, c := range map[string]struct {
		change func(*addonv1alpha1.ClusterManagementAddOn)
		want   error
		text   string
	}{
		"no deadline":   {func(a *addonv1alpha1.ClusterManagementAddOn) { progressive(a).ProgressDeadline = "" }, rollout.ErrStrategy, "placements[1].rolloutStrategy.progressive.progressDeadline is not set"},
		"deadline None": {func(a *addonv1alpha1.ClusterManagementAddOn) { progressive(a).ProgressDeadline = "None" }, rollout.ErrStrategy, "is not set"},
		"deadline too soon": {func(a *addonv1alpha1.ClusterManagementAddOn) {
			progressive(a).MinSuccessTime = metav1.Duration{Duration: time.Hour}
		}, rollout.ErrStrategy, "above minSuccessTime, 1h0m0s"},
		"no duration": {func(a *addonv1alpha1.ClusterManagementAddOn) { progressive(a).ProgressDeadline = "10 minutes" }, rollout.ErrStrategy, `is "10 minutes"`},
		"all at once": {func(a *addonv1alpha1.ClusterManagementAddOn) {
			a.Spec.InstallStrategy.Placements[0].RolloutStrategy.Type = clusterv1alpha1.All
		}, rollout.ErrStrategy, `placements[0].rolloutStrategy.type is "All"`},
		"manual": {func(a *addonv1alpha1.ClusterManagementAddOn) { a.Spec.InstallStrategy.Type = "Manual" }, rollout.ErrStrategy, `type is "Manual"`},
		"lifecycle self": {func(a *addonv1alpha1.ClusterManagementAddOn) {
			a.Annotations["addon.open-cluster-management.io/lifecycle"] = "self"
		}, rollout.ErrStrategy, "nothing carries the strategy out"},
		"no configuration": {func(a *addonv1alpha1.ClusterManagementAddOn) { a.Spec.InstallStrategy.Placements[0].Configs = nil }, rollout.ErrConfigurations, "has 0 AddOnDeploymentConfigs"},
	} {
		t.Run(name, func(t *testing.T) {
			a := rollout.AddOn(groups()...)
			c.change(a)
			if err := rollout.CheckAddOn(a); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	selected := map[string][]string{"ns/" + rollout.SingleNodes: {"east-1", "east-2"}, "ns/" + rollout.Canaries: {"east-2"}}
	addon := rollout.AddOn(groups()...)
	err := rollout.CheckOverlaps(addon, selected)
	if !errors.Is(err, rollout.ErrConfigurations) || !strings.Contains(err.Error(), "cluster east-2 is selected by ns/sno-single-nodes with ns/sno-1 and by ns/sno-canaries with ns/sno-2") {
		t.Errorf("got %v", err)
	}
	if err := rollout.CheckOverlaps(addon, selected, rollout.Canaries); err != nil {
		t.Errorf("canaries: %v", err)
	}
	want := map[string]string{"east-1": "ns/" + rollout.SingleNodes, "east-2": "ns/" + rollout.Canaries}
	if diff := cmp.Diff(want, rollout.GroupOf(addon, selected)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
