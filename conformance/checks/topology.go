// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

const moduleTopology = "topology"

func topologyChecks() []Check {
	table := Requirement{"R-TOP-5", "the topologies have a defined value for each way to install one control-plane node"}
	mode := Requirement{"R-TOP-3", "the high-availability mode is None with fewer than three control-plane replicas"}
	footprint := Requirement{"R-TOP-2", "an operand has no more replicas than its topology asks for"}
	return []Check{
		{
			ID: "SNO-TOP-001", Title: "The Infrastructure object has a known value for both topologies", Module: moduleTopology, Requirement: table, Level: Core, Tier: Static,
			Run: knownModes,
			Controls: []Control{
				{Name: "an unknown topology", Change: onInfrastructure(func(i *configv1.Infrastructure) { i.Status.ControlPlaneTopology = "Twin" })},
				{Name: "no topology", Change: onInfrastructure(func(i *configv1.Infrastructure) { i.Status.InfrastructureTopology = "" })},
				{Name: "the object does not exist", Change: func(in *Input) bool { in.State.Infrastructure = nil; return true }},
				{Name: "a label on the object", MustPass: true, Change: onInfrastructure(func(i *configv1.Infrastructure) { i.Labels = map[string]string{"example.com/reviewed": "yes"} })},
			},
		},
		{
			ID: "SNO-TOP-002", Title: "The control plane's topology agrees with the number of its nodes", Module: moduleTopology, Requirement: mode, Level: Core, Tier: Static, Run: nodesMatchTopology,
			Controls: []Control{
				{Name: "another number of nodes", Change: changeNodeCount},
				{Name: "one more worker", MustPass: true, Change: func(in *Input) bool { addExtraNode(in); return true }},
			},
		},
		{
			ID: "SNO-TOP-003", Title: "Nothing of OpenShift has more replicas than its topology asks for", Module: moduleTopology, Requirement: footprint, Level: Core, Tier: Static,
			Topologies: []string{"SingleReplica", "External"},
			NotApplicable: func(s *State) string {
				if !single(s.controlPlaneMode()) && !single(s.infrastructureMode()) {
					return "neither topology is SingleReplica"
				}
				return ""
			},
			Run: footprints,
			Controls: []Control{
				{Name: "a Deployment with two replicas on the control plane", Change: addDeployment(masterRole, 2)},
				{Name: "a Deployment with one replica on the control plane", MustPass: true, Change: addDeployment(masterRole, 1)},
			},
		},
		{
			ID: "SNO-TOP-004", Title: "No pod of OpenShift is unschedulable", Module: moduleTopology,
			Requirement: Requirement{"R-TOP-1", "whatever OpenShift runs fits on one node"}, Level: Core, Tier: Static, Run: noUnschedulablePods,
			Controls: []Control{
				{Name: "an unschedulable pod", Change: func(in *Input) bool {
					in.State.Pods = append(in.State.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "control"}, Status: corev1.PodStatus{
						Phase:      corev1.PodPending,
						Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}},
					}})
					return true
				}},
				{Name: "a pod that is starting", MustPass: true, Change: func(in *Input) bool {
					in.State.Pods = append(in.State.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "control"}, Status: corev1.PodStatus{Phase: corev1.PodPending}})
					return true
				}},
			},
		},
		{
			ID: "SNO-TOP-005", Title: "No disruption budget of OpenShift forbids every eviction of healthy pods", Module: moduleTopology,
			Requirement: Requirement{"R-SNO-3", "no budget forbids every eviction of healthy pods"},
			Level:       Core, Tier: Static, NotApplicable: func(s *State) string {
				if len(budgetedEvictions(s)) == 0 {
					return "no budget covers a Deployment of OpenShift"
				}
				return ""
			},
			Run: budgetsAllow,
			Controls: []Control{
				{Name: "a budget that requires all replicas", Change: func(in *Input) bool {
					d := anyDeployment(in.State)
					return d != nil && budgetOver(d.Namespace, d.Name, policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("100%"))})(in)
				}},
				{Name: "a budget that allows one disruption", MustPass: true, Change: func(in *Input) bool {
					d := anyDeployment(in.State)
					return d != nil && budgetOver(d.Namespace, d.Name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})(in)
				}},
			},
		},
		{
			ID: "SNO-TOP-006", Title: "Whatever is pinned to the control plane tolerates its taints", Module: moduleTopology, Requirement: Requirement{"R-SNO-1", "pinned means schedulable"}, Level: Extended,
			Tier: Static, NotApplicable: func(s *State) string {
				if len(pinnedDeployments(s)) == 0 {
					return "nothing is pinned to the control plane"
				}
				return ""
			},
			Run: func(_ context.Context, in *Input) ([]report.Evidence, error) {
				var evidence []report.Evidence
				for _, d := range pinnedDeployments(in.State) {
					evidence = append(evidence, toleratesAll(d, in.State.closingTaints())...)
				}
				return evidence, nil
			},
			Controls: []Control{
				{Name: "a pinned Deployment tolerates nothing", Change: func(in *Input) bool {
					pinnedDeployments(in.State)[0].Spec.Template.Spec.Tolerations = nil
					return true
				}},
				{Name: "a Deployment that is not pinned tolerates nothing", MustPass: true, Change: addDeployment(workerRole, 1)},
			},
		},
		{
			ID: "SNO-TOP-007", Title: "Nobody writes to operands and operators' objects at rest", Module: moduleTopology, Requirement: Requirement{"R-SNO-4", "at rest nothing is written"},
			Level: Core, Tier: Scheduled, Recorded: true, Run: checkIdleWrites,
			Controls: []Control{
				{Name: "a Deployment is written", Change: func(in *Input) bool {
					in.IdleWrites.Wrote["Deployment openshift-ingress/control"] = "written"
					return true
				}},
				{Name: "nothing is written", MustPass: true, Change: func(in *Input) bool { return true }},
				onCluster("a client keeps writing to the router's Deployment"), onCluster("a client keeps writing to the IngressController"),
			},
		},
		hostPortsCheck(),
	}
}

func onInfrastructure(change func(*configv1.Infrastructure)) func(*Input) bool {
	return func(in *Input) bool {
		if in.State.Infrastructure == nil {
			return false
		}
		change(in.State.Infrastructure)
		return true
	}
}

func knownModes(_ context.Context, in *Input) ([]report.Evidence, error) {
	if in.State.Infrastructure == nil {
		return missingObject("Infrastructure cluster"), nil
	}
	status := in.State.Infrastructure.Status
	var evidence []report.Evidence
	for field, value := range map[string]configv1.TopologyMode{"controlPlaneTopology": status.ControlPlaneTopology, "infrastructureTopology": status.InfrastructureTopology} {
		evidence = append(evidence, found("Infrastructure cluster", "status."+field, "a topology of the API", fmt.Sprintf("%q", value), value != "" && known(value) == value))
	}
	slices.SortFunc(evidence, func(a, b report.Evidence) int { return strings.Compare(a.Field, b.Field) })
	return evidence, nil
}

// nodesMatchTopology requires the number of control-plane nodes of each topology. A growing cluster fails until its
// topology is changed.
func nodesMatchTopology(_ context.Context, in *Input) ([]report.Evidence, error) {
	n, mode := len(in.State.controlPlaneNodes()), in.State.controlPlaneMode()
	want, held := "at least 3", n >= 3
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		want, held = "1", n == 1
	case configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode:
		want, held = "2", n == 2
	case configv1.ExternalTopologyMode:
		want, held = "0", n == 0
	case configv1.HighlyAvailableTopologyMode:
	}
	return []report.Evidence{found("Nodes of the control plane", "number, with controlPlaneTopology "+string(mode), want, n, held)}, nil
}

func changeNodeCount(in *Input) bool {
	if len(in.State.controlPlaneNodes()) != 1 {
		kept := in.State.nodesWith(masterRole, controlPlaneRole)
		in.State.Nodes = slices.DeleteFunc(in.State.Nodes, func(n corev1.Node) bool { return isControlPlane(&n) })
		if len(kept) > 0 {
			in.State.Nodes = append(in.State.Nodes, kept[0])
			return true
		}
	}
	in.State.Nodes = append(in.State.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one-more", Labels: map[string]string{masterRole: ""}}})
	return true
}

// footprints applies the control plane's topology to pinned workloads, and the infrastructure's to all others.
func footprints(_ context.Context, in *Input) ([]report.Evidence, error) {
	var evidence []report.Evidence
	add := func(kind, namespace, name string, template corev1.PodTemplateSpec, n *int32) {
		governing := in.State.infrastructureMode()
		if pinned(template.Spec.NodeSelector) {
			governing = in.State.operandsMode()
		}
		if !single(governing) {
			return
		}
		count := int32(1)
		if n != nil {
			count = *n
		}
		evidence = append(evidence, found(kind+" "+namespace+"/"+name, "spec.replicas", "at most 1", count, count <= 1))
	}
	for _, d := range in.State.Deployments {
		add("Deployment", d.Namespace, d.Name, d.Spec.Template, d.Spec.Replicas)
	}
	for _, d := range in.State.StatefulSets {
		add("StatefulSet", d.Namespace, d.Name, d.Spec.Template, d.Spec.Replicas)
	}
	return evidence, nil
}

func addDeployment(role string, n int32) func(*Input) bool {
	return func(in *Input) bool {
		d := newDeployment("openshift-control", "control", n)
		d.Spec.Template.Spec.NodeSelector = map[string]string{role: ""}
		in.State.Deployments = append(in.State.Deployments, d)
		return true
	}
}

func noUnschedulablePods(_ context.Context, in *Input) ([]report.Evidence, error) {
	var evidence []report.Evidence
	for _, pod := range in.State.Pods {
		if why := unschedulable(&pod); why != "" && pod.Status.Phase == corev1.PodPending {
			evidence = append(evidence, found("Pod "+pod.Namespace+"/"+pod.Name, "status.conditions[PodScheduled]", "True", why, false))
		}
	}
	if len(evidence) == 0 {
		evidence = append(evidence, found("Pods of OpenShift", "unschedulable", "0", fmt.Sprintf("0 of %d", len(in.State.Pods)), true))
		evidence[0].Got = "0"
	}
	return evidence, nil
}

// budgetedEvictions leaves out etcd, whose guards have their own check.
func budgetedEvictions(s *State) map[string]int {
	evictions := map[string]int{}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if d.Namespace == etcdNamespace || replicas(d) == 0 {
			continue
		}
		for j := range s.Budgets {
			if covers(&s.Budgets[j], d) {
				name := "PodDisruptionBudget " + s.Budgets[j].Namespace + "/" + s.Budgets[j].Name
				evictions[name] = allowed(&s.Budgets[j], int(replicas(d)))
			}
		}
	}
	return evictions
}

func budgetsAllow(_ context.Context, in *Input) ([]report.Evidence, error) {
	evictions := budgetedEvictions(in.State)
	var evidence []report.Evidence
	for _, name := range slices.Sorted(maps.Keys(evictions)) {
		evidence = append(evidence, found(name, "evictions of healthy pods", "at least 1", evictions[name], evictions[name] >= 1))
	}
	return evidence, nil
}

func anyDeployment(s *State) *appsv1.Deployment {
	for i := range s.Deployments {
		if d := &s.Deployments[i]; d.Namespace != etcdNamespace && replicas(d) > 0 {
			return d
		}
	}
	return nil
}

func pinnedDeployments(s *State) []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for i := range s.Deployments {
		if d := &s.Deployments[i]; pinned(d.Spec.Template.Spec.NodeSelector) && replicas(d) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// IdleWrites is the result of a period without changes by the run.
type IdleWrites struct {
	// Wrote are the written objects, with "created", "written" or "deleted".
	Wrote map[string]string
}

// checkIdleWrites waits for a period without writes. A cluster that has just become stable may need several tries.
func checkIdleWrites(ctx context.Context, in *Input) ([]report.Evidence, error) {
	if in.IdleWrites == nil {
		writes, err := in.Copier.watchIdleWrites(ctx)
		if err != nil {
			return nil, err
		}
		in.IdleWrites = writes
	}
	if len(in.IdleWrites.Wrote) == 0 {
		return []report.Evidence{found("Operands and operators' objects", "metadata.resourceVersion", "unchanged", "unchanged", true)}, nil
	}
	var evidence []report.Evidence
	for _, name := range slices.Sorted(maps.Keys(in.IdleWrites.Wrote)) {
		evidence = append(evidence, found(name, "metadata.resourceVersion", "unchanged", in.IdleWrites.Wrote[name], false))
	}
	return evidence, nil
}

func (w *WorkloadCopier) watchIdleWrites(ctx context.Context) (*IdleWrites, error) {
	before, err := Read(ctx, w.objects, w.payload)
	if err != nil {
		return nil, err
	}
	versions, since := versionsOf(before), time.Now()
	writes := &IdleWrites{Wrote: map[string]string{}}
	quiet, err := within(ctx, w.times.Quiet/readsPerQuiet, w.times.Settle, func(ctx context.Context) (bool, error) {
		state, err := Read(ctx, w.objects, w.payload)
		if err != nil {
			return false, err
		}
		now := versionsOf(state)
		if !maps.Equal(versions, now) {
			writes.Wrote = changed(versions, now)
			versions, since = now, time.Now()
		}
		return time.Since(since) >= w.times.Quiet, nil
	})
	if quiet {
		clear(writes.Wrote)
	}
	return writes, err
}

const readsPerQuiet = 3

func versionsOf(s *State) map[string]string {
	all := map[string]string{}
	for i := range s.Deployments {
		all[nameOf(&s.Deployments[i])] = s.Deployments[i].ResourceVersion
	}
	for _, budget := range s.Budgets {
		all["PodDisruptionBudget "+budget.Namespace+"/"+budget.Name] = budget.ResourceVersion
	}
	if s.IngressController != nil {
		all[controllerName] = s.IngressController.ResourceVersion
	}
	if s.Console != nil {
		all["Console cluster"] = s.Console.ResourceVersion
	}
	if s.Authentication != nil {
		all["Authentication cluster"] = s.Authentication.ResourceVersion
	}
	if s.Etcd != nil {
		all["Etcd cluster"] = s.Etcd.ResourceVersion
	}
	if s.ClusterVersion != nil {
		all["ClusterVersion version"] = s.ClusterVersion.ResourceVersion
	}
	return all
}

func changed(before, after map[string]string) map[string]string {
	how := map[string]string{}
	for name, version := range after {
		if was, ok := before[name]; !ok {
			how[name] = "created"
		} else if was != version {
			how[name] = "written"
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			how[name] = "deleted"
		}
	}
	return how
}
