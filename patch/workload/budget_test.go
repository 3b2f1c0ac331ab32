package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/workload"
)

// TestDisruptionBudget shows R-SNO-3: none over one pod, and over more one that lets a pod go.
func TestDisruptionBudget(t *testing.T) {
	labels := map[string]string{"app": "console"}
	for _, mode := range []configv1.TopologyMode{
		configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode, "", "Unheard",
	} {
		got := workload.DisruptionBudget("ns", "console", mode, labels)
		want := &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "console"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
				Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"}},
				UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", mode, diff)
		}
	}
	if got := workload.DisruptionBudget("ns", "console", configv1.SingleReplicaTopologyMode, labels); got != nil {
		t.Errorf("SingleReplica: %v, want none: a budget over one pod blocks every drain or says nothing", got)
	}
	budget := workload.DisruptionBudget("ns", "console", configv1.HighlyAvailableTopologyMode, labels)
	budget.Spec.Selector.MatchLabels["app"] = "changed"
	if labels["app"] != "console" {
		t.Error("the budget shares the caller's labels")
	}
}
