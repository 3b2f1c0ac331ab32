// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/report"
)

const (
	moduleIngress   = "ingress"
	routerNamespace = "openshift-ingress"
	routerName      = "router-default"
	controllerName  = "IngressController openshift-ingress-operator/default"
)

func routers() []workload { return []workload{{routerNamespace, routerName}} }

func routerAbsent(s *State) string {
	if s.IngressController == nil {
		return "the default IngressController does not exist"
	}
	if placement := s.IngressController.Spec.NodePlacement; placement != nil && placement.NodeSelector != nil {
		for key := range placement.NodeSelector.MatchLabels {
			if key != masterRole && key != controlPlaneRole && key != workerRole && key != corev1.LabelOSStable {
				return "nodePlacement selects nodes with " + key
			}
		}
	}
	return ""
}

func routerSingle(s *State) string {
	if why := routerAbsent(s); why != "" {
		return why
	}
	if !single(s.infrastructureMode()) {
		return "infrastructureTopology is not SingleReplica"
	}
	return ""
}

func routerSeveral(s *State) string {
	if why := routerAbsent(s); why != "" {
		return why
	}
	if single(s.infrastructureMode()) {
		return "infrastructureTopology is SingleReplica"
	}
	return ""
}

func withRouter(evaluate func(*State, *appsv1.Deployment) []report.Evidence) func(context.Context, *Input) ([]report.Evidence, error) {
	return withDeployment(routerNamespace, routerName, evaluate)
}

func withDeployment(namespace, name string, evaluate func(*State, *appsv1.Deployment) []report.Evidence) func(context.Context, *Input) ([]report.Evidence, error) {
	return func(_ context.Context, in *Input) ([]report.Evidence, error) {
		d := in.State.Deployment(namespace, name)
		if d == nil {
			return missingObject("Deployment " + namespace + "/" + name), nil
		}
		return evaluate(in.State, d), nil
	}
}

func ingressChecks() []Check {
	onRouter := func(change func(*appsv1.Deployment)) func(*Input) bool {
		return onDeployment(routerNamespace, routerName, change)
	}
	pinned := Requirement{"R-ING-5", "the default IngressController targets the master pool where infrastructureTopology is SingleReplica"}
	floats := Requirement{"R-ING-3", "ingress does not float: the router comes back to the nodes that the DNS entries point to"}
	checks := []Check{
		{
			ID: "SNO-ING-001", Title: "The default router has a single replica where the infrastructure is not highly available", Module: moduleIngress,
			Requirement: Requirement{"R-ING-1", "one router where the high-availability mode is None"},
			Level:       Core, Tier: Static, NotApplicable: routerSingle, Run: withRouter(routerCount),
			Controls: []Control{
				{Name: "two replicas of the router", Change: onRouter(setReplicas(2))},
				{Name: "an annotation on the router", MustPass: true, Change: onRouter(annotate)},
			},
		},
		{
			ID: "SNO-ING-002", Title: "The default router is pinned to the control plane where the infrastructure is not highly available", Module: moduleIngress,
			Requirement: pinned, Level: Core, Tier: Static, NotApplicable: routerSingle, Run: withRouter(routerPinned),
			Controls: []Control{
				{Name: "the router selects workers", Change: onRouter(func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{workerRole: ""} })},
				{Name: "the router also selects an operating system", MustPass: true, Change: onRouter(func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.NodeSelector = maps.Clone(d.Spec.Template.Spec.NodeSelector)
					d.Spec.Template.Spec.NodeSelector[corev1.LabelOSStable] = "linux"
				})},
			},
		},
		{
			ID: "SNO-ING-003", Title: "The pinned router tolerates the taints of control-plane nodes", Module: moduleIngress,
			Requirement: Requirement{"R-SNO-1", "what is pinned to the control plane tolerates its taints"},
			Level:       Core, Tier: Static, NotApplicable: routerSingle, Run: withRouter(routerTolerates),
			Controls: []Control{
				{Name: "the router tolerates nothing", Change: onRouter(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = nil })},
				{Name: "the IngressController that pins it tolerates nothing", Change: func(in *Input) bool {
					in.State.IngressController.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{masterRole: ""}}}
					return true
				}},
				{Name: "the router has one more toleration", MustPass: true, Change: onRouter(func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "example.com/more", Operator: corev1.TolerationOpExists})
				})},
			},
		},
		{
			ID: "SNO-ING-004", Title: "The pods of the default router run on control-plane nodes where it is pinned", Module: moduleIngress, Requirement: pinned,
			Level: Core, Tier: Static, NotApplicable: routerSingle, Run: withRouter(routerPlaced),
			Controls: []Control{
				{Name: "its pods run on another node", Change: movePods(routerNamespace, routerName)},
				{Name: "another node without a router", MustPass: true, Change: func(in *Input) bool { addExtraNode(in); return true }},
			},
		},
		{
			ID: "SNO-ING-005", Title: "The default router has several replicas where the infrastructure is highly available", Module: moduleIngress,
			Requirement: Requirement{"R-ING-2", "two routers where infrastructure is highly available"},
			Level:       Core, Tier: Static, NotApplicable: routerSeveral, Run: withRouter(routerSeveralReplicas),
			Controls: []Control{
				{Name: "one replica of the router", Change: onRouter(setReplicas(1))},
				{Name: "an annotation on the router", MustPass: true, Change: onRouter(annotate)},
			},
		},
		{
			ID: "SNO-ING-006", Title: "No pin is left on the router where the infrastructure is highly available", Module: moduleIngress,
			Requirement: Requirement{"R-ING-6", "the pool is worker where infrastructureTopology is HighlyAvailable"},
			Level:       Core, Tier: Static, NotApplicable: routerUnpinnedApplies, Run: withRouter(routerUnpinned),
			Controls: []Control{
				{Name: "the IngressController selects the control plane", Change: func(in *Input) bool {
					in.State.IngressController.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{masterRole: ""}}}
					return true
				}},
				{Name: "the router selects the control plane", Change: onRouter(func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{masterRole: ""} })},
				{Name: "an annotation on the router", MustPass: true, Change: onRouter(annotate)},
			},
		},
		{
			ID: "SNO-ING-007", Title: "Routers run on different nodes where the infrastructure is highly available", Module: moduleIngress,
			Requirement: Requirement{"R-SNO-11", "HighlyAvailable means several replicas on different nodes"}, Level: Core, Tier: Static, NotApplicable: routerSeveral,
			Run: withRouter(func(s *State, d *appsv1.Deployment) []report.Evidence { return append(spread(s, d), separation(d)) }),
			Controls: []Control{
				{Name: "no rule for different nodes", Change: onRouter(removeSeparation)},
				{Name: "all its pods on one node", Change: movePodsToOneNode(routerNamespace, routerName)},
				{Name: "an annotation on the router", MustPass: true, Change: onRouter(annotate)},
			},
		},
	}
	copied := copyChecks(moduleIngress, "ING", 8, floats, routers(), routerWithin)
	copied[2].Controls = append(copied[2].Controls, Control{Name: "the router avoids control-plane nodes, as a floating router does", Change: func(in *Input) bool {
		return routerSingle(in.State) == "" && len(in.State.Nodes) > len(in.State.controlPlaneNodes()) && onRouter(keepOffControlPlane)(in)
	}})
	for i := range copied {
		copied[i].NotApplicable = firstReason(routerAbsent, copied[i].NotApplicable)
	}
	return slices.Concat(checks, copied, []Check{topologyChangeCheck("SNO-ING-011", moduleIngress)})
}

func firstReason(a, b func(*State) string) func(*State) string {
	return func(s *State) string {
		if why := a(s); why != "" {
			return why
		}
		return b(s)
	}
}

func routerCount(s *State, d *appsv1.Deployment) []report.Evidence {
	evidence := []report.Evidence{found(nameOf(d), "spec.replicas", "1", replicas(d), replicas(d) == 1)}
	if wanted := s.IngressController.Spec.Replicas; wanted != nil {
		evidence = append(evidence, found(controllerName, "spec.replicas", "1 or not set", *wanted, *wanted == 1))
	}
	return evidence
}

func routerPinned(_ *State, d *appsv1.Deployment) []report.Evidence {
	selector := d.Spec.Template.Spec.NodeSelector
	return []report.Evidence{found(nameOf(d), "spec.template.spec.nodeSelector", "the role master or control-plane", keysOf(selector), pinned(selector))}
}

func keysOf(selector map[string]string) string {
	if len(selector) == 0 {
		return "nothing"
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(selector)))
}

// routerTolerates includes the IngressController if that pins: stock operators copy its tolerations.
func routerTolerates(s *State, d *appsv1.Deployment) []report.Evidence {
	evidence := toleratesAll(d, controlPlaneTaints())
	if placement := s.IngressController.Spec.NodePlacement; placement != nil && placement.NodeSelector != nil && pinned(placement.NodeSelector.MatchLabels) {
		for _, taint := range controlPlaneTaints() {
			got := "not tolerated"
			held := tolerates(placement.Tolerations, taint)
			if held {
				got = "tolerated"
			}
			evidence = append(evidence, found(controllerName, "spec.nodePlacement.tolerations["+taint.Key+"]", "tolerated", got, held))
		}
	}
	return evidence
}

func toleratesAll(d *appsv1.Deployment, taints []corev1.Taint) []report.Evidence {
	var evidence []report.Evidence
	for _, taint := range taints {
		got := "not tolerated"
		held := tolerates(d.Spec.Template.Spec.Tolerations, taint)
		if held {
			got = "tolerated"
		}
		evidence = append(evidence, found(nameOf(d), "spec.template.spec.tolerations["+taint.Key+"]", "tolerated", got, held))
	}
	return evidence
}

func routerPlaced(s *State, d *appsv1.Deployment) []report.Evidence {
	pods := s.podsOf(d)
	right := len(pods) > 0
	for _, pod := range pods {
		node := s.node(pod.Spec.NodeName)
		right = right && node != nil && isControlPlane(node)
	}
	return []report.Evidence{found("Pods of "+nameOf(d), "spec.nodeName", "control-plane nodes", nodesOf(pods), right)}
}

func routerSeveralReplicas(_ *State, d *appsv1.Deployment) []report.Evidence {
	return []report.Evidence{
		found(nameOf(d), "spec.replicas", "at least 2", replicas(d), replicas(d) >= 2),
		found(nameOf(d), "status.availableReplicas", "at least 2", d.Status.AvailableReplicas, d.Status.AvailableReplicas >= 2),
	}
}

// routerUnpinnedApplies excludes clusters with defaultPlacement ControlPlane.
func routerUnpinnedApplies(s *State) string {
	if why := routerSeveral(s); why != "" {
		return why
	}
	if s.Ingress != nil && s.Ingress.Status.DefaultPlacement == "ControlPlane" {
		return "defaultPlacement is ControlPlane"
	}
	return ""
}

func routerUnpinned(s *State, d *appsv1.Deployment) []report.Evidence {
	var custom map[string]string
	if placement := s.IngressController.Spec.NodePlacement; placement != nil && placement.NodeSelector != nil {
		custom = placement.NodeSelector.MatchLabels
	}
	selector := d.Spec.Template.Spec.NodeSelector
	return []report.Evidence{
		found(controllerName, "spec.nodePlacement.nodeSelector", "no control-plane role", keysOf(custom), !pinned(custom)),
		found(nameOf(d), "spec.template.spec.nodeSelector", "no control-plane role", keysOf(selector), !pinned(selector)),
	}
}

// spread requires that all pods run on different nodes.
func spread(s *State, d *appsv1.Deployment) []report.Evidence {
	pods := s.podsOf(d)
	nodes := map[string]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	return []report.Evidence{found("Pods of "+nameOf(d), "spec.nodeName", "different nodes", nodesOf(pods), len(pods) > 1 && len(nodes) == len(pods))}
}

// separation requires a rule for different nodes, or host ports, so that the placement is not a coincidence.
func separation(d *appsv1.Deployment) report.Evidence {
	pod := &d.Spec.Template.Spec
	got := "nothing"
	if affinity := pod.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == hostnameLabel {
				got = "required anti-affinity"
			}
		}
		for _, term := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if term.PodAffinityTerm.TopologyKey == hostnameLabel && got == "nothing" {
				got = "preferred anti-affinity"
			}
		}
	}
	if len(hostPorts(pod)) > 0 {
		got = "host ports"
	}
	return found(nameOf(d), "spec.template.spec, separation of pods", "anti-affinity by node, or host ports", got, got != "nothing")
}

func removeSeparation(d *appsv1.Deployment) {
	pod := &d.Spec.Template.Spec
	pod.Affinity, pod.HostNetwork = nil, false
	for i := range pod.Containers {
		for j := range pod.Containers[i].Ports {
			pod.Containers[i].Ports[j].HostPort = 0
		}
	}
}

// routerWithin returns the pool according to R-TOP-5.
func routerWithin(s *State, d *appsv1.Deployment, name string) bool {
	node := s.node(name)
	if node == nil {
		return false
	}
	if single(s.infrastructureMode()) || s.Ingress != nil && s.Ingress.Status.DefaultPlacement == "ControlPlane" {
		return isControlPlane(node)
	}
	_, worker := node.Labels[workerRole]
	return worker
}

func keepOffControlPlane(d *appsv1.Deployment) {
	d.Spec.Template.Spec.NodeSelector = nil
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: masterRole, Operator: corev1.NodeSelectorOpDoesNotExist}},
		}}},
	}}
}

func movePods(namespace, name string) func(*Input) bool {
	return onPods(namespace, name, func(in *Input, pod *corev1.Pod) {
		pod.Spec.NodeName = extraNode
		if in.State.node(extraNode) == nil {
			addExtraNode(in)
		}
	})
}

func movePodsToOneNode(namespace, name string) func(*Input) bool {
	return onPods(namespace, name, func(in *Input, pod *corev1.Pod) { pod.Spec.NodeName = in.State.Nodes[0].Name })
}

func onPods(namespace, name string, change func(*Input, *corev1.Pod)) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(namespace, name)
		if d == nil || len(in.State.podsOf(d)) == 0 {
			return false
		}
		for i := range in.State.Pods {
			if pod := &in.State.Pods[i]; pod.Namespace == namespace && selects(d.Spec.Selector, pod.Labels) {
				change(in, pod)
			}
		}
		return true
	}
}
