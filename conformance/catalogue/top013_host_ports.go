// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// hostPortRollouts fails for rollouts that cannot end: on one node a new pod waits for the host ports of the old pod. A
// Deployment may surge if its old pod may be removed as well; for a DaemonSet the API server accepts only one of both.
func hostPortRollouts() Check {
	return Check{
		ID: "SNO-TOP-013", Title: "A rollout on a single control-plane node does not wait for host ports that the old pod keeps", Module: Topology,
		Requirement: Requirement{"R-SNO-2", "a rollout can end on one node; host ports and maxSurge can keep it from that"},
		Level:       Core, Tier: Static, Topologies: []string{"SingleReplica"},
		NotApplicable: firstOf(onlySingle, func(s *State) string {
			there := len(deploymentsWithHostPorts(s))+len(daemonSetsWithHostPorts(s)) > 0
			return unless(there, "nothing that is pinned to the control plane, and no DaemonSet, has host ports")
		}),
		Run: func(in *Input) ([]report.Evidence, error) {
			var evidence []report.Evidence
			for _, d := range deploymentsWithHostPorts(in.State) {
				got, held := deploymentRollout(d)
				want := fmt.Sprintf("Recreate, or maxUnavailable at least %d", Replicas(d))
				evidence = append(evidence, found(NameOf(d), "spec.strategy, with host ports "+portsOf(&d.Spec.Template), want, got, held))
			}
			for _, d := range daemonSetsWithHostPorts(in.State) {
				got, held := daemonSetRollout(d)
				name, field := "DaemonSet "+d.Namespace+"/"+d.Name, "spec.updateStrategy, with host ports "+portsOf(&d.Spec.Template)
				evidence = append(evidence, found(name, field, "OnDelete, or maxSurge 0", got, held))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a Deployment surges and keeps its old pod", Change: onHostPorts(rolling(intstr.FromInt32(0), intstr.FromInt32(1)))},
			{Name: "a Deployment has the API's default strategy", Change: onHostPorts(rolling(quarter, quarter))},
			{Name: "a DaemonSet surges", Change: addDaemonSet(true)},
			{Name: "a Deployment surges, but its old pod may be removed first", MustPass: true, Change: onHostPorts(rolling(intstr.FromInt32(1), intstr.FromInt32(1)))},
			{Name: "a Deployment has strategy Recreate", MustPass: true, Change: onHostPorts(appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})},
			{Name: "a Deployment without host ports surges", MustPass: true, Change: onState(addSurging)},
			{Name: "a DaemonSet without host ports surges", MustPass: true, Change: addDaemonSet(false)},
		},
	}
}

var quarter = intstr.FromString("25%")

func portsOf(template *corev1.PodTemplateSpec) string {
	return strings.Join(HostPorts(&template.Spec), ", ")
}

func deploymentsWithHostPorts(s *State) []*appsv1.Deployment {
	return slices.DeleteFunc(pinnedDeployments(s), func(d *appsv1.Deployment) bool { return len(HostPorts(&d.Spec.Template.Spec)) == 0 })
}

// daemonSetsWithHostPorts includes those without a node selector: the new pod of a DaemonSet always waits for the node
// of its old pod.
func daemonSetsWithHostPorts(s *State) []*appsv1.DaemonSet {
	return where(s.DaemonSets, func(d *appsv1.DaemonSet) bool { return len(HostPorts(&d.Spec.Template.Spec)) > 0 })
}

// deploymentRollout returns the bounds of a rollout as the controller resolves them, and whether the old pods may be
// removed first. The node has room for one pod, so all replicas must be allowed to be unavailable.
func deploymentRollout(d *appsv1.Deployment) (string, bool) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return string(appsv1.RecreateDeploymentStrategyType), true
	}
	update := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	n := int(Replicas(d))
	unavailable, surge := scaled(ptr.Deref(update.MaxUnavailable, quarter), n, false), scaled(ptr.Deref(update.MaxSurge, quarter), n, true)
	if unavailable == 0 && surge == 0 { // as the controller does
		unavailable = 1
	}
	return fmt.Sprintf("RollingUpdate, maxUnavailable %d, maxSurge %d", unavailable, surge), unavailable >= n
}

func daemonSetRollout(d *appsv1.DaemonSet) (string, bool) {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return string(appsv1.OnDeleteDaemonSetStrategyType), true
	}
	surge := ptr.Deref(ptr.Deref(d.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{}).MaxSurge, intstr.FromInt32(0))
	// Rounded up, any percentage above 0 is at least one pod.
	return "RollingUpdate, maxSurge " + surge.String(), scaled(surge, 1, true) == 0
}

func onHostPorts(strategy appsv1.DeploymentStrategy) func(*Input) bool {
	return func(in *Input) bool {
		all := deploymentsWithHostPorts(in.State)
		if len(all) == 0 {
			return false
		}
		all[0].Spec.Strategy = *strategy.DeepCopy()
		return true
	}
}

const controlPort = 9199

// addSurging adds a pinned Deployment that would deadlock with host ports.
func addSurging(s *State) {
	d := newDeployment("openshift-control", "control", 1)
	d.Spec.Strategy = rolling(intstr.FromInt32(0), intstr.FromInt32(1))
	d.Spec.Template.Spec.NodeSelector = map[string]string{masterRole: ""}
	d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: controlPort}}
	s.Deployments = append(s.Deployments, d)
}

// addDaemonSet adds a DaemonSet that surges. With hostNetwork the API server sets hostPort only in pods, not in
// templates.
func addDaemonSet(hostNetwork bool) func(*Input) bool {
	return onState(func(s *State) {
		like := newDeployment("openshift-control", "control", 1)
		d := appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template}}
		d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("10%")),
		}}
		d.Spec.Template.Spec.HostNetwork = hostNetwork
		d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: controlPort}}
		s.DaemonSets = append(s.DaemonSets, d)
	})
}
