// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// hostPortsCheck fails for rollouts that cannot end: on one node a new pod waits for the host ports of the old pod. A
// Deployment may surge if its old pod may be removed as well; for a DaemonSet the API server accepts only one of both.
func hostPortsCheck() Check {
	return Check{
		ID: "SNO-TOP-013", Title: "A rollout on a single control-plane node does not wait for host ports that the old pod keeps", Module: moduleTopology,
		Requirement: Requirement{"R-SNO-2", "a rollout can end on one node; host ports and maxSurge can keep it from that"},
		Level:       Core, Tier: Static, Topologies: []string{"SingleReplica"},
		NotApplicable: func(s *State) string {
			if !single(s.controlPlaneMode()) {
				return "the control plane is not SingleReplica"
			}
			if len(deploymentsWithHostPorts(s))+len(daemonSetsWithHostPorts(s)) == 0 {
				return "nothing that is pinned to the control plane, and no DaemonSet, has host ports"
			}
			return ""
		},
		Run: hostPortRollouts,
		Controls: []Control{
			{Name: "a Deployment surges and keeps its old pod", Change: onHostPorts(rolling(intstr.FromInt32(0), intstr.FromInt32(1)))},
			{Name: "a Deployment has the API's default strategy", Change: onHostPorts(rolling(quarter, quarter))},
			{Name: "a DaemonSet surges", Change: addDaemonSet(true)},
			{Name: "a Deployment surges, but its old pod may be removed first", MustPass: true, Change: onHostPorts(rolling(intstr.FromInt32(1), intstr.FromInt32(1)))},
			{Name: "a Deployment has strategy Recreate", MustPass: true, Change: onHostPorts(appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})},
			{Name: "a Deployment without host ports surges", MustPass: true, Change: addSurging},
			{Name: "a DaemonSet without host ports surges", MustPass: true, Change: addDaemonSet(false)},
		},
	}
}

var quarter = intstr.FromString("25%")

func hostPortRollouts(_ context.Context, in *Input) ([]report.Evidence, error) {
	var evidence []report.Evidence
	for _, d := range deploymentsWithHostPorts(in.State) {
		got, held := deploymentRollout(d)
		field := "spec.strategy, with host ports " + portsOf(&d.Spec.Template)
		want := fmt.Sprintf("Recreate, or maxUnavailable at least %d", replicas(d))
		evidence = append(evidence, found(nameOf(d), field, want, got, held))
	}
	for _, d := range daemonSetsWithHostPorts(in.State) {
		got, held := daemonSetRollout(d)
		name, field := "DaemonSet "+d.Namespace+"/"+d.Name, "spec.updateStrategy, with host ports "+portsOf(&d.Spec.Template)
		evidence = append(evidence, found(name, field, "OnDelete, or maxSurge 0", got, held))
	}
	return evidence, nil
}

func portsOf(template *corev1.PodTemplateSpec) string {
	return strings.Join(hostPorts(&template.Spec), ", ")
}

func deploymentsWithHostPorts(s *State) []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, d := range pinnedDeployments(s) {
		if len(hostPorts(&d.Spec.Template.Spec)) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// daemonSetsWithHostPorts includes those without a node selector: the new pod of a DaemonSet always waits for the node
// of its old pod.
func daemonSetsWithHostPorts(s *State) []*appsv1.DaemonSet {
	var all []*appsv1.DaemonSet
	for i := range s.DaemonSets {
		if d := &s.DaemonSets[i]; len(hostPorts(&d.Spec.Template.Spec)) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// deploymentRollout returns the bounds of a rollout as the controller resolves them, and whether the old pods may be
// removed first. The node has room for one pod, so all replicas must be allowed to be unavailable.
func deploymentRollout(d *appsv1.Deployment) (string, bool) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return string(appsv1.RecreateDeploymentStrategyType), true
	}
	var update appsv1.RollingUpdateDeployment
	if d.Spec.Strategy.RollingUpdate != nil {
		update = *d.Spec.Strategy.RollingUpdate
	}
	n := int(replicas(d))
	unavailable, surge := resolved(update.MaxUnavailable, quarter, n, false), resolved(update.MaxSurge, quarter, n, true)
	if unavailable == 0 && surge == 0 { // as the controller does
		unavailable = 1
	}
	return fmt.Sprintf("RollingUpdate, maxUnavailable %d, maxSurge %d", unavailable, surge), unavailable >= n
}

func daemonSetRollout(d *appsv1.DaemonSet) (string, bool) {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return string(appsv1.OnDeleteDaemonSetStrategyType), true
	}
	surge := intstr.FromInt32(0)
	if update := d.Spec.UpdateStrategy.RollingUpdate; update != nil && update.MaxSurge != nil {
		surge = *update.MaxSurge
	}
	// Rounded up, any percentage above 0 is at least one pod.
	return "RollingUpdate, maxSurge " + surge.String(), resolved(&surge, surge, 1, true) == 0
}

func resolved(value *intstr.IntOrString, byDefault intstr.IntOrString, n int, up bool) int {
	result, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(value, byDefault)), n, up)
	if err != nil {
		return 0
	}
	return result
}

func rolling(unavailable, surge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: &unavailable, MaxSurge: &surge,
	}}
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

// addSurging adds a pinned Deployment that would deadlock with host ports.
func addSurging(in *Input) bool {
	d := newDeployment("openshift-control", "control", 1)
	d.Spec.Strategy = rolling(intstr.FromInt32(0), intstr.FromInt32(1))
	d.Spec.Template.Spec.NodeSelector = map[string]string{masterRole: ""}
	d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: controlPort}}
	in.State.Deployments = append(in.State.Deployments, d)
	return true
}

const controlPort = 9199

// addDaemonSet adds a DaemonSet that surges. With hostNetwork the API server sets hostPort only in pods, not in
// templates.
func addDaemonSet(hostNetwork bool) func(*Input) bool {
	return func(in *Input) bool {
		like := newDeployment("openshift-control", "control", 1)
		d := appsv1.DaemonSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template}}
		d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("10%")),
		}}
		d.Spec.Template.Spec.HostNetwork = hostNetwork
		d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: controlPort}}
		in.State.DaemonSets = append(in.State.DaemonSets, d)
		return true
	}
}
