// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1alpha1"
	clusterlisters "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/rollout"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{"--leader-elec": "leader-elec", "extra": `unexpected argument: "extra"`} {
		var out bytes.Buffer
		if code := Main([]string{args}, &out); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, out.String())
		}
	}
	if code := Main([]string{"-h"}, &bytes.Buffer{}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code := Main([]string{"--kubeconfig=/does/not/exist"}, &bytes.Buffer{}); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// caches has the objects of a hub whose strategy selects east-1.
type caches struct {
	cma        *addonv1alpha1.ClusterManagementAddOn
	placements []*clusterv1beta1.Placement
	selected   map[string][]string // by Placement
}

var config = configuration.Configuration{
	Modules: []string{"ingress"}, Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1",
	DrainPolicy: "never", Placement: "topology",
}.Object("ns", "sno")

func group(placement, configuration string) rollout.Group {
	return rollout.Group{Namespace: "ns", Placement: placement, Configuration: configuration, Limits: rollout.DefaultLimits}
}

func (c caches) strategy(t *testing.T) strategy {
	t.Helper()
	store := func(objects ...any) cache.Indexer {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, o := range objects {
			if err := indexer.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		return indexer
	}
	addons, placements, decisions := store(), store(), store()
	if c.cma != nil {
		addons = store(c.cma)
	}
	for _, p := range c.placements {
		if err := placements.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	for name, clusters := range c.selected {
		d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: name}}}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		if err := decisions.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return strategy{addonlisters.NewClusterManagementAddOnLister(addons), clusterlisters.NewPlacementLister(placements), clusterlisters.NewPlacementDecisionLister(decisions)}
}

func newCaches() *caches {
	return &caches{
		cma: rollout.AddOn(group(rollout.SingleNodes, config.Name)), placements: rollout.Placements("ns", "global"),
		selected: map[string][]string{rollout.SingleNodes: {"east-1"}},
	}
}

// Nothing is written while the strategy would not stop, or select by accident.
func TestStrategy(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change  func(*caches)
		faults  []error
		selects bool
	}{
		"good":                                 {func(*caches) {}, nil, true},
		"a cluster that is selected by nobody": {func(c *caches) { c.selected = nil }, nil, false},
		"selects everything":                   {func(c *caches) { c.placements[0].Spec.Predicates = nil }, []error{rollout.ErrSelectsAll}, true},
		"drops clusters":                       {func(c *caches) { c.placements[0].Spec.Tolerations = nil }, []error{rollout.ErrTolerations}, true},
		"two configurations": {func(c *caches) {
			c.cma = rollout.AddOn(group(rollout.SingleNodes, config.Name), group(rollout.SingleNodesWithWorkers, "other"))
			c.selected[rollout.SingleNodesWithWorkers] = []string{"east-1"}
		}, []error{rollout.ErrConfigurations}, true},
		"canaries": {func(c *caches) {
			c.cma = rollout.AddOn(group(rollout.SingleNodes, config.Name), group(rollout.Canaries, "other"))
			c.selected[rollout.Canaries] = []string{"east-1"}
		}, nil, true},
		"at once": {func(c *caches) { c.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Type = "All" }, []error{rollout.ErrStrategy}, true},
		"goes":    {func(c *caches) { c.cma.DeletionTimestamp = &now }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			caches := newCaches()
			c.change(caches)
			s := caches.strategy(t)
			err := s.check()
			for _, want := range c.faults {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			if len(c.faults) == 0 && err != nil {
				t.Error(err)
			}
			if got, err := s.selects("east-1"); got != c.selects || err != nil {
				t.Errorf("selects: %t, %v", got, err)
			}
		})
	}
	if selects, err := (caches{}).strategy(t).selects("east-1"); selects || err != nil {
		t.Errorf("without a strategy: %t, %v", selects, err)
	}
	if (caches{}).strategy(t).check() == nil {
		t.Error("no error without a strategy")
	}
}

// The manifests wait until the rights are applied, as they are now.
func TestManifestsWaitForRights(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: workv1.WorkApplied, Status: status, ObservedGeneration: generation}}
	}
	errGrant := errors.New("no")
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		granting   error
		claim      string // why the claim is not applied
		strategy   func(*caches)
		deleted    bool
		want       error
	}{
		"applied":           {conditions: condition("True", 2)},
		"not reported":      {want: executor.ErrWaiting},
		"earlier ones":      {conditions: condition("True", 1), want: executor.ErrWaiting},
		"refused":           {conditions: condition("False", 2), want: executor.ErrNotApplied},
		"not written":       {granting: errGrant, want: errGrant},
		"of another hub":    {claim: `Apply failed with 1 conflict: conflict with "work-agent-sno-1234": .metadata.annotations`, want: executor.ErrOtherHub},
		"not claimed":       {claim: "forbidden", want: executor.ErrNotApplied},
		"bad strategy":      {conditions: condition("True", 2), strategy: func(c *caches) { c.placements[0].Spec.Predicates = nil }, want: rollout.ErrSelectsAll},
		"released whatever": {conditions: condition("True", 2), strategy: func(c *caches) { c.cma = nil }, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := newCaches()
			if c.strategy != nil {
				c.strategy(objects)
			}
			a := &addOn{strategy: objects.strategy(t)}
			a.Agent = &agent.Agent{
				Configuration: func(string, string) (*addonv1alpha1.AddOnDeploymentConfig, error) { return config, nil },
				Works:         func(string) []*workv1.ManifestWork { return nil }, Selected: a.strategy.selects, Now: time.Now,
			}
			a.grant, a.apply = true, func(w *workv1.ManifestWork) (*workv1.ManifestWork, error) {
				w.Generation = 2
				switch {
				case w.Name == executor.WorkName && c.claim == "":
					w.Status.Conditions = c.conditions
					return w, c.granting
				case w.Name != executor.ClaimName:
					t.Errorf("%s is written", w.Name)
				case c.claim == "":
					w.Status.Conditions = condition("True", 2)
				default:
					w.Status.Conditions = condition("False", 2)
					w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: "False", Message: c.claim}}}}
				}
				return w, nil
			}
			cluster, addon := &clusterv1.ManagedCluster{}, &addonv1alpha1.ManagedClusterAddOn{}
			cluster.Name, addon.Namespace, addon.Name = "east-1", "east-1", fleet.AddOn
			cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: "SingleReplica"}}
			addon.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
				DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: config.Name}},
			}}
			if c.deleted {
				at := metav1.NewTime(time.Now().Add(-time.Hour))
				addon.DeletionTimestamp = &at
			}
			got, err := a.Manifests(cluster, addon)
			if !errors.Is(err, c.want) || (err == nil) != (len(got) > 0) {
				t.Errorf("%d objects, %v, want %v", len(got), err, c.want)
			}
		})
	}
}

func TestWorksOf(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, w := range []*workv1.ManifestWork{newWork("{}"), newWork("{}")} {
		if len(indexer.List()) > 0 {
			w.Name, w.Labels = executor.WorkName, map[string]string{addonv1alpha1.AddonLabelKey: executor.AddOn}
		}
		if err := indexer.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	if got := worksOf(worklisters.NewManifestWorkLister(indexer), "east-1"); len(got) != 1 || got[0].Name == executor.WorkName {
		t.Errorf("got %v, want that of the manifests only", got)
	}
}
