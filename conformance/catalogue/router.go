// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"maps"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RouterController is the name of the default IngressController in evidence.
const RouterController = "IngressController openshift-ingress-operator/default"

var router = types.NamespacedName{Namespace: "openshift-ingress", Name: "router-default"}

func routers() []types.NamespacedName { return []types.NamespacedName{router} }

// IsRouter reports whether a Deployment is the default router.
func IsRouter(d *appsv1.Deployment) bool {
	return d.Namespace == router.Namespace && d.Name == router.Name
}

// routerAbsent also leaves out routers that a person has put on nodes of another role.
func routerAbsent(s *State) string {
	if s.IngressController == nil {
		return "the default IngressController does not exist"
	}
	for key := range placement(s) {
		if key != masterRole && key != controlPlaneRole && key != workerRole && key != corev1.LabelOSStable {
			return "nodePlacement selects nodes with " + key
		}
	}
	return ""
}

func routerSingle(s *State) string {
	return firstOf(routerAbsent, func(s *State) string {
		return unless(single(s.infrastructureMode()), "infrastructureTopology is not SingleReplica")
	})(s)
}

func routerSeveral(s *State) string {
	return firstOf(routerAbsent, func(s *State) string {
		return unless(!single(s.infrastructureMode()), "infrastructureTopology is SingleReplica")
	})(s)
}

// placement returns the labels of nodes that the IngressController selects.
func placement(s *State) map[string]string {
	if p := s.IngressController.Spec.NodePlacement; p != nil && p.NodeSelector != nil {
		return p.NodeSelector.MatchLabels
	}
	return nil
}

// pinController has the IngressController select the control plane, and tolerate nothing.
func pinController(s *State) {
	s.IngressController.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{masterRole: ""}}}
}

func onRouter(change func(*appsv1.Deployment)) func(*Input) bool { return onDeployment(router, change) }

func keysOf(selector map[string]string) string {
	if len(selector) == 0 {
		return "nothing"
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(selector)))
}

// routerWithin returns the pool according to R-TOP-5.
func routerWithin(s *State, _ *appsv1.Deployment, node *corev1.Node) bool {
	if single(s.infrastructureMode()) || s.Ingress != nil && s.Ingress.Status.DefaultPlacement == "ControlPlane" {
		return onControlPlane(node.Labels)
	}
	_, worker := node.Labels[workerRole]
	return worker
}
