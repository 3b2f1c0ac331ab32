// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/etcd"
)

func etcdObject() *operatorv1.Etcd {
	return &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: operatorv1.EtcdSpec{
		StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}},
	}}
}

func etcdSite(t *testing.T, mode configv1.TopologyMode, nodes int) *site {
	t.Helper()
	s := newSite(t, []string{"openshift-etcd"}, []client.Object{&operatorv1.Etcd{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}}, etcdObject())
	s.topology(mode, many)
	s.masters(nodes)
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}}
		changeStatus(s, node, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
		s.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-" + node.Name, Labels: map[string]string{"etcd": "true"}},
			Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}},
		})
	}
	return s
}

// startEtcd has the etcd of the API server as the only member, which has no node's name.
func (s *site) startEtcd(stock bool) {
	s.Helper()
	options := etcd.DefaultOptions()
	options.Stock, options.Endpoints, options.MembersInterval = stock, s.server.EtcdURL(), 100*time.Millisecond
	s.start(options)
}

// guards waits for the guards' nodes and the minimum of their budget, as a kubelet makes guards ready or ends them.
func (s *site) guards(want string) {
	s.Helper()
	s.eventually("the guards", func() error {
		var pods corev1.PodList
		if err := s.admin.List(s.Context(), &pods, client.InNamespace("openshift-etcd"), client.MatchingLabels{"app": "guard"}); err != nil {
			return err
		}
		var got []string
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp != nil {
				if err := s.admin.Delete(s.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
					return err
				}
				continue
			}
			if len(pod.Status.Conditions) == 0 && pod.Status.Phase != corev1.PodFailed {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				if err := s.admin.Status().Update(s.Context(), pod); err != nil {
					return err
				}
			}
			got = append(got, pod.Spec.NodeName)
		}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
		if s.get(budget) {
			got = append(got, "of "+budget.Spec.MinAvailable.String())
		}
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they are %q, want %q", text, want) //nolint:err113 // a test
		}
		return nil
	})
}

// A guard on each node with a budget, none on a single node (U-ETC-7), repaired, and not of a cordoned node.
func TestEtcdGuards(t *testing.T) {
	s := etcdSite(t, many, 3)
	s.startEtcd(false)
	s.guards("m0 m1 m2 of 2")
	s.silent(etcdObject())
	failed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-m0"}}
	changeStatus(s, failed, func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = corev1.PodFailed, nil })
	before := failed.UID
	s.eventually("another guard", func() error {
		s.guards("m0 m1 m2 of 2")
		if s.get(failed); failed.UID == before {
			return fmt.Errorf("it is the same") //nolint:err113 // a test
		}
		return nil
	})
	s.must(s.admin.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}))
	s.guards("m0 m1 m2 of 2")
	change(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	s.silent()
	s.guards("m0 m1 m2 of 2")
	// The only member of etcd is healthy, so a single node needs no guards.
	s.topology(single, single)
	s.guards("")
	conditions := func() []operatorv1.OperatorCondition {
		live := etcdObject()
		s.get(live)
		return live.Status.Conditions
	}
	s.conditions(conditions, map[string]string{
		"GuardControllerProgressing": "False AsExpected", "EtcdMembersProgressing": "False AsExpected", "EtcdMembersDegraded": "True Error",
		"UnsupportedConfigOverridesUpgradeable": "True AsExpected",
	})
	s.silent()
	change(s, etcdObject(), func(e *operatorv1.Etcd) {
		e.Spec.UnsupportedConfigOverrides.Raw = []byte(`{"useUnsupportedUnsafeNonHANonProductionUnstableEtcd": "perhaps"}`)
	})
	s.conditions(conditions, map[string]string{"UnsupportedConfigOverridesUpgradeable": "False UnreadableOverride"})
	change(s, etcdObject(), func(e *operatorv1.Etcd) { e.Spec.ManagementState = operatorv1.Unmanaged })
	s.topology(many, many)
	s.silent()
	s.guards("")
}

// Today's guard controller follows a change of the topology with the next event of a node (U-ETC-9), and has no guard
// without a pod of etcd.
func TestEtcdStock(t *testing.T) {
	s := etcdSite(t, single, 3)
	s.must(s.admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-m1"}}, client.GracePeriodSeconds(0)))
	s.startEtcd(true)
	s.silent()
	s.guards("")
	s.topology(many, many)
	s.settle()
	s.guards("")
	s.touch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}})
	s.guards("m0 m2 of 2")
	s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-m1", Labels: map[string]string{"etcd": "true"}},
		Spec:       corev1.PodSpec{NodeName: "m1", Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}},
	})
	s.guards("m0 m1 m2 of 2")
	s.silent()
	s.topology(single, single)
	s.settle()
	s.guards("m0 m1 m2 of 2")
	s.touch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}})
	s.guards("")
	if live := etcdObject(); !s.get(live) || len(live.Status.Conditions) > 0 {
		t.Errorf("conditions %v", live.Status.Conditions)
	}
}
