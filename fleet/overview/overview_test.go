// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/internal/workagent"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/patch"
)

const since = "2026-01-02T03:04:05Z"

// spoke is one cluster with its add-on and its work.
type spoke struct {
	cluster clusterv1.ManagedCluster
	addon   *addonv1alpha1.ManagedClusterAddOn
	work    workv1.ManifestWork
	claim   workv1.ManifestWork
}

// newSpoke returns a cluster whose work agent has read what the controllers report.
func newSpoke(t testing.TB, name string, results map[string]patch.Result) *spoke {
	t.Helper()
	s := &spoke{addon: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fleet.AddOn}}}
	s.cluster.Name, s.cluster.Labels = name, map[string]string{"region": "east"}
	s.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
	s.cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: fleet.ClaimControlPlane, Value: "SingleReplica"}}
	s.configure("sno-1")
	s.work.Namespace, s.work.Labels = name, map[string]string{addonv1alpha1.AddonLabelKey: fleet.AddOn}
	s.claim.Namespace, s.claim.Labels = name, map[string]string{addonv1alpha1.AddonLabelKey: executor.AddOn}
	for _, m := range feedback.Modules() {
		result, runs := results[m.Name]
		if !runs {
			continue
		}
		var conditions []any
		for _, c := range result.Conditions(m.Prefix, result.Failing()) {
			conditions = append(conditions, map[string]any{
				"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message, "lastTransitionTime": since,
			})
		}
		object := m.Manifest()
		object.Object["status"] = map[string]any{"conditions": conditions}
		reported, err := workagent.Report(m.ManifestConfig(), object)
		if err != nil {
			t.Fatal(err)
		}
		s.work.Status.ResourceStatus.Manifests = append(s.work.Status.ResourceStatus.Manifests, reported)
	}
	return s
}

// deploy adds the Deployment of ingress, whose newest pod is not available, or none without a reason.
func (s *spoke) deploy(t *testing.T, reason string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)}, "metadata": map[string]any{"name": "sno-ingress-controller", "generation": int64(1)},
		"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(1), "availableReplicas": int64(1), "conditions": []any{
			map[string]any{"type": "Progressing", "reason": reason, "message": "Of new pods"}, map[string]any{"type": "Available", "message": "Of all pods"},
		}},
	}}
	if reason == "" {
		object = nil
	}
	reported, err := workagent.Report(feedback.Controllers(), object)
	if err != nil {
		t.Fatal(err)
	}
	reported.ResourceMeta.Name = "sno-ingress-controller"
	s.work.Status.ResourceStatus.Manifests = append(s.work.Status.ResourceStatus.Manifests, reported)
}

func (s *spoke) configure(names ...string) {
	s.addon.Status.ConfigReferences = nil
	for _, name := range names {
		s.addon.Status.ConfigReferences = append(s.addon.Status.ConfigReferences, addonv1alpha1.ConfigReference{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name}},
		})
	}
}

// healthy makes it the cluster of a manager that has seen every module settled.
func (s *spoke) healthy() {
	for _, kind := range []string{addonv1alpha1.ManagedClusterAddOnConditionAvailable, addonv1alpha1.ManagedClusterAddOnManifestApplied} {
		s.addon.Status.Conditions = append(s.addon.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	for i := range s.addon.Status.ConfigReferences {
		s.addon.Status.ConfigReferences[i].LastAppliedConfig = s.addon.Status.ConfigReferences[i].DesiredConfig
	}
}

func table(spokes ...*spoke) overview.Table {
	in := overview.Inputs{Configurations: map[string]configuration.Configuration{"ns/sno-1": {Image: "r:5000/{module}:v1"}, "ns/sno-dry": {DryRun: true}}}
	for _, s := range spokes {
		in.Clusters, in.Works = append(in.Clusters, s.cluster), append(in.Works, s.work, s.claim)
		if s.addon != nil {
			in.AddOns = append(in.AddOns, *s.addon)
		}
	}
	return overview.New(in)
}

var (
	inForce = patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected, Message: "Pinned"}
	rolling = patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut, Message: "Rolling out"}
	blocked = patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: "Owned by a person"}
)

func TestStates(t *testing.T) {
	notNeeded := patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded, Message: "Not needed"}
	good := map[string]patch.Result{"ingress": inForce, "etcdguard": notNeeded}
	now := metav1.Now()
	condition := func(kind, reason string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "A sentence"}}
	}
	for name, c := range map[string]struct {
		results map[string]patch.Result
		change  func(*spoke)
		want    string
		exit    int
	}{
		"settled":               {good, nil, "Settled AsExpected", 0},
		"rolling out":           {map[string]patch.Result{"auth": inForce, "ingress": rolling}, nil, "Progressing RollingOut ingress: Rolling out", 4},
		"blocked":               {map[string]patch.Result{"auth": rolling, "ingress": blocked}, nil, "NotInForce FieldOwnedByOther ingress: Owned by a person", 6},
		"not reported":          {map[string]patch.Result{}, nil, "Installing NotReported", 4},
		"its turn has not come": {nil, func(s *spoke) { s.configure() }, "Installing WaitingForTurn", 4},
		"dry run":               {nil, func(s *spoke) { s.configure("sno-dry") }, "DryRun DryRun", 0},
		"two configurations":    {good, func(s *spoke) { s.configure("sno-1", "sno-2") }, "Refused Configuration not exactly one configuration: cluster east-1 has ns/sno-1 and ns/sno-2", 6},
		"opted out":             {nil, func(s *spoke) { s.addon, s.cluster.Labels[fleet.OptOutLabel] = nil, "" }, "OptedOut OptedOut", 0},
		"away": {good, func(s *spoke) {
			s.cluster.Status.Conditions = condition(clusterv1.ManagedClusterConditionAvailable, "ManagedClusterLeaseUpdateStopped", metav1.ConditionUnknown)
		}, "Away ManagedClusterLeaseUpdateStopped A sentence", 5},
		"healthy, and its work not read":                    {nil, func(s *spoke) { s.healthy() }, "Settled AsExpected", 0},
		"healthy with an earlier configuration":             {nil, func(s *spoke) { s.healthy(); s.configure("sno-1") }, "Installing NotReported", 4},
		"its work is more than what the manager made of it": {map[string]patch.Result{"ingress": blocked}, func(s *spoke) { s.healthy() }, "NotInForce", 6},
		"its new pods do not start":                         {good, func(s *spoke) { s.deploy(t, "ReplicaSetUpdated") }, "Progressing ReplicaSetUpdated ingress: Of new pods", 4},
		"its new pods never start":                          {good, func(s *spoke) { s.deploy(t, "ProgressDeadlineExceeded") }, "NotInForce ProgressDeadlineExceeded ingress: Of new pods", 6},
		"its pods have ended":                               {good, func(s *spoke) { s.deploy(t, "NewReplicaSetAvailable") }, "NotInForce MinimumReplicasUnavailable ingress: Of all pods", 6},
		"its Deployment is deleted":                         {good, func(s *spoke) { s.deploy(t, "") }, "NotInForce ResourceNotAvailable ingress: Resource is not", 6},
		"being installed": {map[string]patch.Result{"ingress": blocked}, func(s *spoke) {
			object, option := feedback.Installation()
			object.Object["data"] = map[string]any{"status": "installing", "phase": "post-reboot: phase operators (4 of 9)", "message": "the control plane"}
			reported, err := workagent.Report(option, object)
			if err != nil {
				t.Fatal(err)
			}
			s.claim.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{reported}
		}, "Installing ClusterInstalling post-reboot: phase operators (4 of 9): the control plane", 4},
		"waiting for its rights": {nil, func(s *spoke) {
			s.addon.Status.Conditions = condition(addonv1alpha1.ManagedClusterAddOnManifestApplied, "ManifestWorkApplyFailed", metav1.ConditionFalse)
			s.addon.Status.Conditions[0].Message = executor.Applied(&s.work).Error()
		}, "Installing WaitingForRights", 4},
		"its rights were refused": {nil, func(s *spoke) {
			s.work.Status.Conditions = condition(workv1.WorkApplied, "No", metav1.ConditionFalse)
			s.addon.Status.Conditions = condition(addonv1alpha1.ManagedClusterAddOnManifestApplied, "ManifestWorkApplyFailed", metav1.ConditionFalse)
			s.addon.Status.Conditions[0].Message = executor.Applied(&s.work).Error()
		}, "Refused ManifestWorkApplyFailed", 6},
		"removing": {good, func(s *spoke) {
			s.addon.DeletionTimestamp = &now
			s.addon.Status.Conditions = condition(addonv1alpha1.ManagedClusterAddOnHookManifestCompleted, "HookManifestIsNotCompleted", metav1.ConditionFalse)
		}, "Removing Releasing A sentence", 4},
		"render refused": {nil, func(s *spoke) {
			s.addon.Status.Conditions = condition(addonv1alpha1.ManagedClusterAddOnManifestApplied, "ManifestWorkApplyFailed", metav1.ConditionFalse)
		}, "Refused ManifestWorkApplyFailed A sentence", 6},
		"no OpenShift": {nil, func(s *spoke) {
			s.work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
				ResourceMeta: workv1.ManifestResourceMeta{Kind: "Etcd", Name: "cluster"}, Conditions: condition(workv1.ManifestApplied, "AppliedManifestFailed", metav1.ConditionFalse),
			}}
		}, "Refused ManifestsNotApplied Etcd cluster: A sentence", 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpoke(t, "east-1", c.results)
			if c.change != nil {
				c.change(s)
			}
			got := table(s)
			if len(got) != 1 {
				t.Fatalf("got %+v", got)
			}
			if text := strings.Join([]string{got[0].State.String(), got[0].Reason, got[0].Message}, " "); !strings.HasPrefix(text, c.want) {
				t.Errorf("got %s, want %s", text, c.want)
			}
			if exit := got.Worst().ExitCode(); exit != c.exit {
				t.Errorf("exit code %d, want %d", exit, c.exit)
			}
		})
	}
}

// A cluster that nothing selects, and works and add-ons of others, are no rows.
func TestOthersAreLeftOut(t *testing.T) {
	foreign := newSpoke(t, "west-1", map[string]patch.Result{"ingress": blocked})
	foreign.addon.Name, foreign.work.Labels = "other", nil
	unselected := newSpoke(t, "west-2", nil)
	unselected.addon = nil
	if got := table(foreign, unselected); len(got) != 0 || got.Worst() != overview.Settled {
		t.Errorf("got %+v", got)
	}
}

func TestRowSortAndFilter(t *testing.T) {
	bad := newSpoke(t, "east-2", map[string]patch.Result{"ingress": blocked, "auth": inForce})
	bad.cluster.Labels["region"] = "west"
	all := table(newSpoke(t, "east-3", map[string]patch.Result{"ingress": inForce}), newSpoke(t, "east-1", map[string]patch.Result{"ingress": rolling}), bad)
	names := func(t overview.Table) (out []string) {
		for _, r := range t {
			out = append(out, r.Cluster)
		}
		return out
	}
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		t.Fatal(err)
	}
	want := overview.Row{
		Cluster: "east-2", Labels: bad.cluster.Labels, ControlPlane: "SingleReplica", Configuration: "ns/sno-1", Version: "v1", State: overview.NotInForce,
		Module: "ingress", Reason: patch.ReasonFieldOwnedByOther, Message: "ingress: Owned by a person", Since: &at,
	}
	if diff := cmp.Diff(want, all[0], cmpopts.IgnoreFields(overview.Row{}, "Modules")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	west, err := labels.Parse("region=west")
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[string][]string{
		"east-2 east-1 east-3": names(all),
		"east-2":               names(all.Filter(west)),
		"east-1":               names(all.Filter(labels.Everything(), patch.ReasonRollingOut)),
		"east-2 east-3":        names(all.Filter(labels.Everything(), patch.ReasonAsExpected)),
		"":                     names(all.Filter(west, patch.ReasonRollingOut)),
	} {
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestGroupPlans(t *testing.T) {
	field := func(name string) overview.Change {
		return overview.Change{Module: "ingress", Object: "ingresscontroller/default", Field: name, Desired: "1", Verdict: "set"}
	}
	var plans []overview.Plan
	for i := range 4 {
		plans = append(plans, overview.Plan{Cluster: fmt.Sprintf("odd-%d", 3-i), Refused: "owned by a person"})
	}
	for i := range 310 {
		changes := []overview.Change{field(".spec.replicas"), field(".spec.nodePlacement")}
		if i%2 == 0 {
			slices.Reverse(changes)
		}
		plans = append(plans, overview.Plan{Cluster: fmt.Sprintf("even-%03d", 309-i), Changes: changes})
	}
	plans = append(plans, overview.Plan{Cluster: "single", Changes: []overview.Change{field(".spec.replicas")}})
	var got []string
	for _, g := range overview.GroupPlans(plans) {
		got = append(got, fmt.Sprintf("%d from %s, %d changes, %s", len(g.Clusters), g.Clusters[0], len(g.Changes), g.Refused))
	}
	want := []string{"4 from odd-0, 0 changes, owned by a person", "310 from even-000, 2 changes, ", "1 from single, 1 changes, "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Names of states are in output, so each has its own.
func TestStateNames(t *testing.T) {
	seen := map[string]bool{}
	for s := overview.Settled; s <= overview.Refused; s++ {
		if text, err := s.MarshalText(); err != nil || seen[string(text)] || strings.Contains(string(text), "(") {
			t.Errorf("state %d is %s, %v", s, text, err)
		} else {
			seen[string(text)] = true
		}
	}
}

func BenchmarkNew2000(b *testing.B) {
	results := map[string]patch.Result{}
	for _, name := range feedback.Names() {
		results[name] = inForce
	}
	one := newSpoke(b, "east-0", results)
	in := overview.Inputs{Configurations: map[string]configuration.Configuration{"ns/sno-1": {}}}
	for i := range 2000 {
		name := fmt.Sprintf("east-%d", i)
		cluster, addon, work := *one.cluster.DeepCopy(), *one.addon.DeepCopy(), *one.work.DeepCopy()
		cluster.Name, addon.Namespace, work.Namespace = name, name, name
		in.Clusters, in.AddOns, in.Works = append(in.Clusters, cluster), append(in.AddOns, addon), append(in.Works, work)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := overview.New(in); len(got) != 2000 || got.Worst() != overview.Settled {
			b.Fatal(len(got), got.Worst())
		}
	}
}
