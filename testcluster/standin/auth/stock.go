// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"maps"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
)

// stockCount counts by the role, without taints.
func stockCount(nodes []corev1.Node, _ []corev1.Toleration) int32 {
	var count int32
	for i := range nodes {
		if _, master := nodes[i].Labels[auth.ControlPlaneNodeLabel]; master {
			count++
		}
	}
	return count
}

// stockShape has today's faults: the replicas are the number of nodes, so there are none with an External control
// plane; the only pod must end before the next one can start, even if both could share the node.
func stockShape(o operand, base *appsv1.Deployment, s place) (shaped, error) {
	if o.namespace == auth.OAuthServerNamespace {
		return shaped{deployment: stockDeployment(o, base, s.nodes, max(s.nodes-1, 1), s.nodes)}, nil
	}
	result := shaped{deployment: stockDeployment(o, base, s.nodes, 1, 0)}
	if s.cluster.ControlPlane.Reported != configv1.SingleReplicaTopologyMode {
		result.budget = standin.Budget(o.namespace, o.budget, base.Spec.Selector.MatchLabels, intstr.FromInt32(1))
	}
	return result, nil
}

// stockDeployment sets anti-affinity between any two pods by its own label.
func stockDeployment(o operand, base *appsv1.Deployment, replicas, maxUnavailable, maxSurge int32) *appsv1.Deployment {
	deployment := base.DeepCopy()
	deployment.Spec.Replicas = &replicas
	deployment.Spec.Strategy = standin.RollingUpdate(intstr.FromInt32(maxUnavailable), intstr.FromInt32(maxSurge))
	label := o.component + "-anti-affinity"
	template := &deployment.Spec.Template
	template.Labels[label] = "true"
	apart := maps.Clone(base.Spec.Selector.MatchLabels)
	apart[label] = "true"
	template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: apart}, TopologyKey: corev1.LabelHostname,
		}},
	}}
	return deployment
}

// stockReadiness knows no rollouts: while the only API server restarts, the endpoint is not available.
func stockReadiness(_ configv1.TopologyMode, probes []error, before auth.WellKnownState, now time.Time) auth.Readiness {
	const inertia = 5 * time.Minute
	failed := 0
	for _, err := range probes {
		if err != nil {
			failed++
		}
	}
	switch {
	case len(probes) > 0 && failed == 0:
		return auth.Readiness{Available: true, Reason: patch.ReasonAsExpected, Message: "The well-known endpoint is available", State: auth.WellKnownState{Available: true}}
	case failed == len(probes):
		return auth.Readiness{Reason: "NotReady", Message: "The well-known endpoint is not yet available"}
	}
	state := auth.WellKnownState{Available: true, FailingSince: before.FailingSince}
	if state.FailingSince.IsZero() {
		state.FailingSince = now
	}
	failing := now.Sub(state.FailingSince)
	readiness := auth.Readiness{
		Available: true, Degraded: failing > inertia, Reason: "AtLeastOneWellKnownEndpointAvailable",
		Message: "The well-known endpoint is available on some API servers only", State: state,
	}
	if !readiness.Degraded {
		readiness.After = inertia - failing + time.Second
	}
	return readiness
}
