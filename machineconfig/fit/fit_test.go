// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/machineconfig/fit"
)

const zone, os = corev1.LabelTopologyZone, corev1.LabelOSStable

var (
	now       = metav1.Now().Rfc3339Copy()
	tolerates = corev1.Toleration{Key: "for", Operator: corev1.TolerationOpExists}
)

// two returns a cluster with two nodes, of which w1 is to be drained.
func two(change ...func(*corev1.Node)) *builder {
	return newCluster().node("w1", 8, 16).node("w2", 8, 16, change...)
}

func TestCheck(t *testing.T) {
	small := template("a", 1, 1)
	one := func(change ...func(*corev1.PodSpec)) *builder {
		return two().replicas("a", template("a", 1, 1, change...), "w1")
	}
	staleBudget, staleSet := one().budget("b", "a", 9), two().stateful("a", "v1", small, "w1")
	staleBudget.Budgets[0].Generation, staleSet.StatefulSets[0].Generation = 1, 1
	mirror := func(pod *corev1.Pod) {
		pod.OwnerReferences[0].Kind, pod.Annotations = "Node", map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	unread := func(forget func(*fit.Cluster)) *builder {
		b := two()
		forget(&b.Cluster)
		return b
	}
	terminating := func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }
	otherNamespace := func(pod *corev1.Pod) { pod.Namespace = "other" }
	ownedBy := func(group, kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = group, kind }
	}
	for _, test := range []struct {
		name     string
		cluster  *builder
		draining []string
		want     string
	}{
		{"nodes not read", unread(func(c *fit.Cluster) { c.Nodes = nil }), nil, fit.ReasonNotRead},
		{"pods not read", unread(func(c *fit.Cluster) { c.Pods = nil }), nil, fit.ReasonNotRead},
		{"budgets not read", unread(func(c *fit.Cluster) { c.Budgets = nil }), nil, fit.ReasonNotRead},
		{"replica sets not read", unread(func(c *fit.Cluster) { c.ReplicaSets = nil }), nil, fit.ReasonNotRead},
		{"stateful sets not read", unread(func(c *fit.Cluster) { c.StatefulSets = nil }), nil, fit.ReasonNotRead},
		{"no pods", two(), nil, fit.ReasonRoomElsewhere},
		{"half full", two().replicas("a", small, "w1", "w1", "w2", "w2"), nil, fit.ReasonRoomElsewhere},
		{"fits exactly", two().replicas("a", template("a", 4, 1), "w1", "w1"), nil, fit.ReasonRoomElsewhere},
		{"full of CPU", two().replicas("a", template("a", 4, 1), "w1").replicas("b", template("b", 5, 1), "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"full of memory", two().replicas("a", template("a", 1, 8), "w1").replicas("b", template("b", 1, 9), "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"fits one by one, but not both", two().replicas("a", template("a", 3, 1), "w1", "w1").replicas("b", template("b", 3, 1), "w2"), nil, fit.ReasonNotEnoughRoom},
		{"no request", two().replicas("a", template("a", 0, 0), "w1").replicas("b", template("b", 8, 16), "w2"), nil, fit.ReasonRoomElsewhere},
		{"full of pods", two().replicas("a", template("a", 0, 0), "w1", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"nearly full of pods", two().replicas("a", template("a", 0, 0), "w1", "w1", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2"), nil, fit.ReasonNotEnoughRoom},
		{"a resource that no other node has", one(func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Requests["example.org/gpu"] = resource.MustParse("1")
		}), nil, fit.ReasonNoNodeTakesPod},
		{"an init container needs more", one(func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}}}}
		}), nil, fit.ReasonNoNodeTakesPod},
		{"overhead counts", two().replicas("a", template("a", 8, 1, func(spec *corev1.PodSpec) {
			spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		}), "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"a pod that is being shrunk", two().replicas("a", template("a", 4, 1), "w1").
			replicas("b", template("b", 1, 1), "w2").pod(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}}}}
		}), nil, fit.ReasonNoNodeTakesPod},
		{"finished pods", two().replicas("a", template("a", 8, 1), "w1", "w2").pod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), nil, fit.ReasonRoomElsewhere},
		{"three nodes, none has room for all", two().node("w3", 8, 16).
			replicas("a", template("a", 1, 1), "w1", "w1", "w1", "w1", "w1", "w1").replicas("b", template("b", 4, 1), "w2", "w3"), nil, fit.ReasonRoomElsewhere},
		{"three nodes, others may fill them", two().node("w3", 8, 16).
			replicas("a", template("a", 3, 1), "w1", "w1").replicas("c", template("c", 1, 1), "w1", "w1").replicas("b", template("b", 4, 1), "w2", "w3"), nil, fit.ReasonNotEnoughRoom},
		{"selector that no other node has", one(selecting("disk", "ssd")), nil, fit.ReasonNoNodeTakesPod},
		{"selector that another node has", two(labelled("disk", "ssd")).replicas("a", template("a", 1, 1, selecting("disk", "ssd")), "w1"), nil, fit.ReasonRoomElsewhere},
		{"affinity to its node", one(func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"w1"}}}}},
			}}}
		}), nil, fit.ReasonNoNodeTakesPod},
		{"pods with a node selector do not use other nodes", newCluster().node("w1", 8, 16).node("w2", 8, 16, labelled("disk", "ssd")).node("w3", 8, 16).
			replicas("a", template("a", 8, 1, selecting("disk", "ssd")), "w1").replicas("b", template("b", 8, 1, selecting(corev1.LabelHostname, "w3")), "w1"), nil, fit.ReasonRoomElsewhere},
		{"tainted", two(tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"tainted NoExecute", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"tainted PreferNoSchedule", two(tainted(corev1.TaintEffectPreferNoSchedule)).replicas("a", small, "w1"), nil, fit.ReasonRoomElsewhere},
		{"tolerated", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", template("a", 1, 1, tolerating(tolerates)), "w1"), nil, fit.ReasonRoomElsewhere},
		{"tolerated for a minute", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", template("a", 1, 1, tolerating(
			corev1.Toleration{Key: "for", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](60), Effect: corev1.TaintEffectNoExecute})), "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"tolerates everything, also the cordon", one(tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})), nil, fit.ReasonSchedulingNotFollowed},
		{"another operating system, feasible", two(labelled(os, "windows")).replicas("a", small, "w1"), nil, fit.ReasonOtherOperatingSystem},
		{"another operating system, tainted", two(labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"another operating system, not selected", newCluster().node("w1", 8, 16, labelled(os, "linux")).node("w2", 8, 16, labelled(os, "windows")).
			replicas("a", template("a", 1, 1, selecting(os, "linux")), "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"room elsewhere, and another operating system", two().node("w3", 8, 16, labelled(os, "windows")).replicas("a", small, "w1"), nil, fit.ReasonOtherOperatingSystem},
		{"room elsewhere, and another operating system, tainted", two().node("w3", 8, 16, labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).
			replicas("a", small, "w1"), nil, fit.ReasonRoomElsewhere},
		{"room on another operating system only, taint tolerated", two(labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).
			replicas("a", template("a", 1, 1, tolerating(tolerates)), "w1"), nil, fit.ReasonOtherOperatingSystem},
		{"another operating system, full", two(labelled(os, "windows")).node("w3", 8, 16).replicas("a", template("a", 4, 1), "w1").replicas("b", template("b", 8, 1), "w2"), nil, fit.ReasonOtherOperatingSystem},
		{"from Windows to Windows", newCluster().node("w1", 8, 16, labelled(os, "windows")).node("w2", 8, 16, labelled(os, "windows")).node("w3", 8, 16, labelled(os, "linux")).
			replicas("a", template("a", 1, 1, selecting(os, "windows")), "w1"), nil, fit.ReasonRoomElsewhere},
		{"from Windows to Linux", newCluster().node("w1", 8, 16, labelled(os, "windows")).node("w2", 8, 16).replicas("a", small, "w1"), nil, fit.ReasonOtherOperatingSystem},
		{"not ready", two(func(node *corev1.Node) { node.Status.Conditions[1].Status = corev1.ConditionUnknown }).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"under pressure", two(func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionTrue }).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"cordoned", two(func(node *corev1.Node) { node.Spec.Unschedulable = true }).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"being deleted", two(func(node *corev1.Node) { node.DeletionTimestamp = &now }).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"without a feature that its node has", newCluster().node("w1", 8, 16, func(node *corev1.Node) { node.Status.DeclaredFeatures = []string{"New"} }).
			node("w2", 8, 16).replicas("a", small, "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"anti-affinity to its own application", two().replicas("a", template("a", 1, 1, antiAffinity("a", corev1.LabelHostname)), "w1", "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"anti-affinity to its own application, with a free node", two().node("w3", 8, 16).replicas("a", template("a", 1, 1, antiAffinity("a", corev1.LabelHostname)), "w1", "w2"), nil, fit.ReasonRoomElsewhere},
		{"anti-affinity of another pod", one().replicas("b", template("b", 1, 1, antiAffinity("a", corev1.LabelHostname)), "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"anti-affinity by zone", newCluster().node("w1", 8, 16, labelled(zone, "z1")).node("w2", 8, 16, labelled(zone, "z2")).node("w3", 8, 16, labelled(zone, "z2")).
			replicas("a", template("a", 1, 1, antiAffinity("b", zone)), "w1").replicas("b", template("b", 1, 1), "w3"), nil, fit.ReasonNoNodeTakesPod},
		{"anti-affinity between two evicted pods", one(antiAffinity("b", corev1.LabelHostname)).replicas("b", template("b", 1, 1), "w1"), nil, fit.ReasonNotEnoughRoom},
		{"anti-affinity between two evicted pods, with a node for each", two().node("w3", 8, 16).
			replicas("a", template("a", 1, 1, antiAffinity("b", corev1.LabelHostname)), "w1").replicas("b", template("b", 1, 1), "w1"), nil, fit.ReasonRoomElsewhere},
		{"anti-affinity between two evicted pods by zone", newCluster().node("w1", 8, 16, labelled(zone, "z1")).node("w2", 8, 16, labelled(zone, "z2")).node("w3", 8, 16, labelled(zone, "z2")).
			replicas("a", template("a", 1, 1, antiAffinity("b", zone)), "w1").replicas("b", template("b", 1, 1), "w1"), nil, fit.ReasonNotEnoughRoom},
		{"anti-affinity to its own namespace", one(antiAffinity("b", corev1.LabelHostname)).
			replicas("b", template("b", 1, 1), "w2").pod(otherNamespace), nil, fit.ReasonRoomElsewhere},
		{"anti-affinity to any namespace", one(antiAffinity("b", corev1.LabelHostname, inAnyNamespace)).
			replicas("b", template("b", 1, 1), "w2").pod(otherNamespace), nil, fit.ReasonNoNodeTakesPod},
		{"affinity to a pod that stays", one(affinity("b", corev1.LabelHostname)).replicas("b", template("b", 1, 1), "w2"), nil, fit.ReasonRoomElsewhere},
		{"affinity to another evicted pod", one(affinity("b", corev1.LabelHostname)).replicas("b", template("b", 1, 1), "w1"), nil, fit.ReasonNoNodeTakesPod},
		{"affinity to a terminating pod", one(affinity("b", corev1.LabelHostname)).replicas("b", template("b", 1, 1), "w2").
			pod(terminating), nil, fit.ReasonNoNodeTakesPod},
		{"affinity to its own application, without another pod", one(affinity("a", corev1.LabelHostname)), nil, fit.ReasonNoNodeTakesPod},
		{"affinity to a pod of any namespace", one(affinity("b", corev1.LabelHostname, inAnyNamespace)).replicas("b", template("b", 1, 1), "w2").
			pod(otherNamespace), nil, fit.ReasonNoNodeTakesPod},
		{"host port taken", two().replicas("a", template("a", 1, 1, hostPort(443)), "w1", "w2"), nil, fit.ReasonNoNodeTakesPod},
		{"host port free", one(hostPort(443)).replicas("b", template("b", 1, 1, hostPort(80)), "w2"), nil, fit.ReasonRoomElsewhere},
		{"two evicted pods with one host port", one(hostPort(443)).replicas("b", template("b", 1, 1, hostPort(443)), "w1"), nil, fit.ReasonNotEnoughRoom},
		{"budget allows it", two().replicas("a", small, "w1", "w1").budget("b", "a", 2), nil, fit.ReasonRoomElsewhere},
		{"budget allows fewer", two().replicas("a", small, "w1", "w1").budget("b", "a", 1), nil, fit.ReasonBudgetTooTight},
		{"budget permits no eviction", one().budget("b", "a", 0), nil, fit.ReasonBudgetTooTight},
		{"budget over others", one().replicas("c", template("c", 1, 1), "w2").budget("b", "c", 0), nil, fit.ReasonRoomElsewhere},
		{"several budgets", one().budget("b", "a", 9).budget("c", "a", 9), nil, fit.ReasonBudgetTooTight},
		{"budget that was just changed", staleBudget, nil, fit.ReasonBudgetTooTight},
		{"budget over a terminating pod", one().pod(terminating).budget("b", "a", 0), nil, fit.ReasonRoomElsewhere},
		{"without a controller", one().pod(func(pod *corev1.Pod) { pod.OwnerReferences = nil }), nil, fit.ReasonSuccessorUnknown},
		{"of a job", one().pod(ownedBy("batch/v1", "Job")), nil, fit.ReasonSuccessorUnknown},
		{"a replica set of another group", one().pod(ownedBy("example.org/v1", "ReplicaSet")), nil, fit.ReasonSuccessorUnknown},
		{"a daemon set of another group", one().pod(ownedBy("example.org/v1", "DaemonSet")), nil, fit.ReasonSuccessorUnknown},
		{"its replica set is gone", one().pod(func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "old" }), nil, fit.ReasonSuccessorUnknown},
		{"mirrors of static pods stay", two().replicas("a", template("a", 8, 1), "w1").pod(mirror).replicas("b", template("b", 8, 1), "w2"), nil, fit.ReasonRoomElsewhere},
		{"pods of daemon sets stay", two().replicas("a", template("a", 8, 1), "w1").pod(ownedBy("apps/v1", "DaemonSet")).replicas("b", template("b", 8, 1), "w2"), nil, fit.ReasonRoomElsewhere},
		{"stateful", two().stateful("a", "v1", small, "w1"), nil, fit.ReasonRoomElsewhere},
		{"stateful, being updated", two().stateful("a", "v0", small, "w1"), nil, fit.ReasonSuccessorUnknown},
		{"stateful, update not observed", staleSet, nil, fit.ReasonSuccessorUnknown},
		{"template requests more", changed(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}), nil, fit.ReasonSuccessorUnknown},
		{"template selects other nodes", changed(func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), nil, fit.ReasonSuccessorUnknown},
		{"template has other anti-affinity", changed(func(t *corev1.PodTemplateSpec) { antiAffinity("b", zone)(&t.Spec) }), nil, fit.ReasonSuccessorUnknown},
		{"template has other labels", changed(func(t *corev1.PodTemplateSpec) { t.Labels["app"] = "b" }), nil, fit.ReasonSuccessorUnknown},
		{"template has host ports", changed(func(t *corev1.PodTemplateSpec) { hostPort(80)(&t.Spec) }), nil, fit.ReasonSuccessorUnknown},
		{"template names the node", changed(func(t *corev1.PodTemplateSpec) { t.Spec.NodeName = "w1" }), nil, fit.ReasonSuccessorUnknown},
		{"template has scheduling gates", changed(func(t *corev1.PodTemplateSpec) { t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), nil, fit.ReasonSchedulingNotFollowed},
		{"template has a volume", changed(func(t *corev1.PodTemplateSpec) {
			volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})(&t.Spec)
		}), nil, fit.ReasonVolumeTiesPodToNode},
		{"tolerations were added to the pod", two(tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1").pod(func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerates)
		}), nil, fit.ReasonSuccessorUnknown},
		{"volumes that do not depend on the node", two().replicas("a", template("a", 1, 1,
			volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
			volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}),
			volume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}})), "w1"), nil, fit.ReasonRoomElsewhere},
		{"volume of a claim", one(volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}})), nil, fit.ReasonVolumeTiesPodToNode},
		{"host path", one(volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})), nil, fit.ReasonVolumeTiesPodToNode},
		{"required topology spread", one(func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule}}
		}), nil, fit.ReasonSchedulingNotFollowed},
		{"preferred topology spread", one(func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}), nil, fit.ReasonRoomElsewhere},
		{"another scheduler", one(func(spec *corev1.PodSpec) { spec.SchedulerName = "mine" }), nil, fit.ReasonSchedulingNotFollowed},
		{"resource claim", one(func(spec *corev1.PodSpec) {
			spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}), nil, fit.ReasonSchedulingNotFollowed},
		{"pending pods", one().replicas("b", template("b", 1, 1), ""), nil, fit.ReasonPodsWaitForANode},
		{"both nodes are drained", two().replicas("a", small, "w1", "w2"), []string{"w1", "w2"}, fit.ReasonNoNodeTakesPod},
		{"two of three nodes are drained", two().node("w3", 8, 16).replicas("a", template("a", 4, 1), "w1", "w2"), []string{"w1", "w2"}, fit.ReasonRoomElsewhere},
		{"two of three nodes are drained, with room for one pod", two().node("w3", 7, 16).replicas("a", template("a", 4, 1), "w1", "w2"), []string{"w1", "w2"}, fit.ReasonNotEnoughRoom},
		{"a missing node", two(), []string{"w9"}, fit.ReasonNotRead},
		{"pods of an unhealthy node may be placed too", two().node("w3", 8, 16, func(node *corev1.Node) { node.Status.Conditions[1].Status = corev1.ConditionFalse }).
			replicas("a", template("a", 5, 1), "w1", "w3"), nil, fit.ReasonNotEnoughRoom},
		{"the replacement of a terminating pod is placed too", two().replicas("a", template("a", 3, 1), "w1", "w2").pod(terminating), nil, fit.ReasonNotEnoughRoom},
	} {
		t.Run(test.name, func(t *testing.T) {
			draining := test.draining
			if draining == nil {
				draining = []string{"w1"}
			}
			var before fit.Cluster
			if text, err := json.Marshal(test.cluster.Cluster); err != nil || json.Unmarshal(text, &before) != nil {
				t.Fatal(err)
			}
			got := fit.Check(test.cluster.Cluster, draining...)
			if got.Reason != test.want || got.Fits != (test.want == fit.ReasonRoomElsewhere) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			if got.Message == "" || (got.Detail == "") != got.Fits {
				t.Errorf("message %q, detail %q", got.Message, got.Detail)
			}
			if again := fit.Check(test.cluster.Cluster, draining...); again != got {
				t.Errorf("not deterministic: %+v, before %+v", again, got)
			}
			if diff := cmp.Diff(before, test.cluster.Cluster); diff != "" {
				t.Errorf("the check changed its input:\n%s", diff)
			}
		})
	}
}

// changed returns a cluster with a pod whose template was changed later.
func changed(change func(*corev1.PodTemplateSpec)) *builder {
	b := two().replicas("a", template("a", 1, 1), "w1")
	b.ReplicaSets[0].Spec.Template = *b.ReplicaSets[0].Spec.Template.DeepCopy()
	change(&b.ReplicaSets[0].Spec.Template)
	return b
}
