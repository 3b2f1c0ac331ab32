// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	none  = outcome{}
	three = outcome{[]string{"m0 on m0", "m1 on m1", "m2 on m2"}, "2"}

	atRest = map[string]string{
		"GuardControllerProgressing": "False AsExpected", "GuardControllerDegraded": "False AsExpected",
		"EtcdMembersAvailable": "True AsExpected", "EtcdMembersProgressing": "False AsExpected", "EtcdMembersDegraded": "False AsExpected",
		"EtcdMembersUpgradeable": "True AsExpected", "EtcdRunningInCluster": "True EnoughEtcdMembers", "UnsupportedConfigOverridesUpgradeable": "True AsExpected",
	}
)

func TestGuardsByTopology(t *testing.T) {
	for _, test := range []struct {
		mode  configv1.TopologyMode
		nodes []string
		want  outcome
	}{
		{sr, []string{"m0"}, none},
		{dual, []string{"m0", "m1"}, outcome{[]string{"m0 on m0", "m1 on m1"}, "1"}},
		{arbiter, []string{"arbiter", "m0", "m1"}, outcome{[]string{"arbiter on arbiter", "m0 on m0", "m1 on m1"}, "2"}},
		{ha, []string{"m0", "m1", "m2"}, three},
	} {
		t.Run(string(test.mode), func(t *testing.T) {
			s := newSite(t, test.mode, test.nodes, test.nodes...)
			s.start()
			s.expect(test.want)
			s.expectConditions(atRest)
			s.silent()
			s.expectMembers(test.nodes...)
		})
	}
	t.Run("External", func(t *testing.T) {
		s := newSite(t, external, nil)
		s.start()
		s.expectConditions(atRest)
		s.expect(none)
	})
}

// The members are removed before the guards when three nodes become one.
func TestShrinksToOneNode(t *testing.T) {
	nodes := []string{"m0", "m1", "m2"}
	s := newSite(t, ha, nodes, nodes...)
	s.start()
	s.expect(three)
	s.topology(sr)
	s.expectConditions(map[string]string{"GuardControllerProgressing": "True WaitingForMembers"})
	s.expect(three)
	s.delete(node("m2"))
	s.expectMembers("m0", "m1")
	s.expectConditions(map[string]string{"GuardControllerProgressing": "True WaitingForMembers"})
	s.expect(three)
	s.delete(node("m1"))
	s.expectMembers("m0")
	s.expect(none)
	s.expectConditions(atRest)
	s.silent()
	s.topology(ha)
	s.expect(outcome{[]string{"m0 on m0"}, "2"})
	s.expectConditions(map[string]string{"EtcdMembersProgressing": "True WaitingForMembers", "EtcdRunningInCluster": "False NotEnoughEtcdMembers"})
}

// No healthy member is removed below the minimum of the topology, unless the override lowers it.
func TestKeepsMinimumOfMembers(t *testing.T) {
	nodes := []string{"m0", "m1", "m2"}
	s := newSite(t, ha, nodes[:2], nodes...)
	s.start()
	s.expectConditions(map[string]string{"EtcdMembersDegraded": "True Error", "EtcdRunningInCluster": "True EnoughEtcdMembers"})
	s.silent()
	s.expectMembers(nodes...)

	override := func(raw string) {
		t.Helper()
		change(s, etcdObject(), func(e *operatorv1.Etcd) { e.Spec.UnsupportedConfigOverrides.Raw = []byte(raw) })
	}
	override(`{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd": "perhaps"}`)
	s.expectConditions(map[string]string{
		"UnsupportedConfigOverridesUpgradeable": "False UnreadableOverride", "EtcdMembersProgressing": "True WaitingForMembers",
	})
	s.expectMembers(nodes...)
	override(`{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd": true}`)
	s.expectMembers("m0", "m1")
	s.expectConditions(map[string]string{
		"UnsupportedConfigOverridesUpgradeable": "False UnsupportedConfigOverrides", "EtcdMembersDegraded": "False AsExpected",
	})
}

// The bootstrap member is removed when there are enough others.
func TestBootstrapMember(t *testing.T) {
	nodes := []string{"m0", "m1", "m2"}
	t.Run("complete", func(t *testing.T) {
		s := newSite(t, ha, nodes, append([]string{"etcd-bootstrap"}, nodes...)...)
		s.etcd = strings.Join(strings.Split(s.etcd, ",")[1:], ",") // the removed member does not answer
		s.start()
		s.expectMembers(nodes...)
		s.expectConditions(map[string]string{"EtcdRunningInCluster": "True EnoughEtcdMembers"})
	})
	t.Run("incomplete", func(t *testing.T) {
		s := newSite(t, ha, nodes, "etcd-bootstrap", "m0")
		s.start()
		s.expectConditions(map[string]string{"EtcdRunningInCluster": "False NotEnoughEtcdMembers", "EtcdMembersProgressing": "True WaitingForMembers"})
		s.silent()
		s.expectMembers("etcd-bootstrap", "m0")
	})
	t.Run("other names", func(t *testing.T) {
		s := newSite(t, sr, nodes[:1], "x", "y")
		s.start()
		s.expectConditions(map[string]string{"EtcdMembersDegraded": "True Error"})
		s.silent()
		s.expectMembers("x", "y")
	})
}

// Without etcd nothing is removed.
func TestNoEtcd(t *testing.T) {
	s := newSite(t, ha, []string{"m0", "m1", "m2"})
	s.start()
	s.expect(three)
	s.topology(sr)
	s.expectConditions(map[string]string{"GuardControllerProgressing": "True WaitingForMembers", "EtcdMembersAvailable": "False WaitingForMembers"})
	s.silent()
	s.expect(three)
}

// Guards and budget are repaired, and follow the nodes.
func TestRepairsGuards(t *testing.T) {
	nodes := []string{"m0", "m1", "m2"}
	s := newSite(t, ha, nodes, nodes...)
	s.start()
	s.expect(three)

	s.delete(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-guard-pdb"}})
	s.expect(three)
	uid := s.pods()[0].UID
	failed := s.pods()[0]
	failed.Status.Phase = corev1.PodFailed
	if err := s.admin.Status().Update(t.Context(), &failed); err != nil {
		t.Fatal(err)
	}
	s.eventually("another guard", func() string {
		if s.pods()[0].UID == uid {
			return "it is the same"
		}
		return ""
	})
	s.expect(three)

	// The guard of a cordoned node stays, but is not created again.
	change(s, node("m1"), func(n *corev1.Node) { n.Spec.Unschedulable = true })
	s.silent()
	s.expect(three)
	s.delete(&s.pods()[1])
	s.expect(outcome{[]string{"m0 on m0", "m2 on m2"}, "2"})
	s.silent()
	s.expect(outcome{[]string{"m0 on m0", "m2 on m2"}, "2"})
	change(s, node("m1"), func(n *corev1.Node) { n.Spec.Unschedulable = false })
	s.expect(three)

	// An unmanaged Etcd is left alone.
	change(s, etcdObject(), func(e *operatorv1.Etcd) { e.Spec.ManagementState = operatorv1.Unmanaged })
	s.settle()
	s.delete(&s.pods()[1])
	s.silent()
	s.expect(outcome{[]string{"m0 on m0", "m2 on m2"}, "2"})
}

// The stock guard controller follows a change of the topology with the next event of a node, has no guard without
// etcd's pod, and reads no members.
func TestStock(t *testing.T) {
	s := newSite(t, sr, []string{"m0", "m1", "m2"})
	s.runEtcd("m0")
	s.runEtcd("m2")
	s.start(func(o *Options) { o.Stock = true })
	s.settle()
	s.expect(none)
	s.topology(ha)
	s.settle()
	s.expect(none)
	s.touch(node("m0"))
	s.expect(outcome{[]string{"m0 on m0", "m2 on m2"}, "2"})
	s.runEtcd("m1")
	s.expect(three)
	s.silent()
	s.topology(sr)
	s.settle()
	s.expect(three)
	s.touch(node("m0"))
	s.expect(none)
	live := etcdObject()
	if err := s.admin.Get(t.Context(), keyOf(live), live); err != nil || len(live.Status.Conditions) > 0 {
		t.Errorf("conditions %v, %v", live.Status.Conditions, err)
	}
}

// Objects of others are not written.
func TestWritesOnlyItsOwn(t *testing.T) {
	own := []string{"/openshift-etcd/pods", "/openshift-etcd/poddisruptionbudgets", "/openshift-etcd/serviceaccounts", "/etcds/cluster/status"}
	for _, write := range shared.Server(t).Writes(t, user) {
		if !slices.ContainsFunc(own, func(part string) bool { return strings.Contains(write.URI, part) }) {
			t.Errorf("unexpected: %s", write)
		}
	}
}
