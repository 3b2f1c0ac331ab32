package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

func TestTolerations(t *testing.T) {
	want := []corev1.Toleration{
		{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	got := workload.Tolerations(topology.PlacementOf(topology.ControlPlanePool))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
	// Pinned means schedulable: each taint that a control-plane node can have is tolerated.
	for _, key := range []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		tolerated := false
		for _, toleration := range got {
			tolerated = tolerated || (toleration.Key == taint.Key && toleration.Operator == corev1.TolerationOpExists && toleration.Effect == taint.Effect)
		}
		if !tolerated {
			t.Errorf("the taint %s is not tolerated", key)
		}
	}
	if got := workload.Tolerations(topology.PlacementOf(topology.WorkerPool)); got != nil {
		t.Errorf("workers: %v, want none", got)
	}
}

func TestRollingUpdate(t *testing.T) {
	for mode, want := range map[configv1.TopologyMode][2]int32{
		configv1.SingleReplicaTopologyMode:   {0, 1},
		configv1.HighlyAvailableTopologyMode: {1, 1},
	} {
		unavailable, surge := intstr.FromInt32(want[0]), intstr.FromInt32(want[1])
		wanted := appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge},
		}
		if diff := cmp.Diff(wanted, workload.RollingUpdate(topology.RolloutStrategy(mode, false))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

func TestAntiAffinity(t *testing.T) {
	labels := map[string]string{"app": "console"}
	term := func(keys ...string) *corev1.PodAntiAffinity {
		return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"}},
			MatchLabelKeys: keys,
			TopologyKey:    "kubernetes.io/hostname",
		}}}
	}
	for separation, want := range map[workload.Separation]*corev1.PodAntiAffinity{
		workload.Together: nil, workload.PerRevision: term("pod-template-hash"), workload.Always: term(),
	} {
		if diff := cmp.Diff(want, workload.AntiAffinity(separation, labels)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", separation, diff)
		}
	}
}
