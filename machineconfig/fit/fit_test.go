package fit_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig/fit"
)

const zone, os = corev1.LabelTopologyZone, corev1.LabelOSStable

var (
	now       = metav1.Now()
	tolerates = corev1.Toleration{Key: "for", Operator: corev1.TolerationOpExists}
)

// two is a cluster of two nodes, of which w1 is to be drained.
func two(change ...func(*corev1.Node)) *builder {
	return newCluster().node("w1", 8, 16).node("w2", 8, 16, change...)
}

func TestCheck(t *testing.T) {
	small := template("a", 1, 1)
	for _, test := range []struct {
		name    string
		cluster *builder
		leaving []string
		want    string
	}{
		{"nothing to move", two(), nil, fit.Room},
		{"half full", two().replicas("a", small, "w1", "w1", "w2", "w2"), nil, fit.Room},
		{"just fits", two().replicas("a", template("a", 4, 1), "w1", "w1"), nil, fit.Room},
		{"full of CPU", two().replicas("a", template("a", 4, 1), "w1").replicas("b", template("b", 5, 1), "w2"), nil, fit.NoNode},
		{"full of memory", two().replicas("a", template("a", 1, 8), "w1").replicas("b", template("b", 1, 9), "w2"), nil, fit.NoNode},
		{"fits one by one, but not both", two().replicas("a", template("a", 3, 1), "w1", "w1").replicas("b", template("b", 3, 1), "w2"), nil, fit.NoRoom},
		{"no request", two().replicas("a", template("a", 0, 0), "w1").replicas("b", template("b", 8, 16), "w2"), nil, fit.Room},
		{"full of pods", two().replicas("a", template("a", 0, 0), "w1", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2"), nil, fit.NoNode},
		{"nearly full of pods", two().replicas("a", template("a", 0, 0), "w1", "w1", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2", "w2"), nil, fit.NoRoom},
		{"a resource that no other node has", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Requests["example.org/gpu"] = resource.MustParse("1")
		}), "w1"), nil, fit.NoNode},
		{"an init container needs more", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}}}}
		}), "w1"), nil, fit.NoNode},
		{"overhead counts", two().replicas("a", template("a", 8, 1, func(spec *corev1.PodSpec) {
			spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		}), "w1"), nil, fit.NoNode},
		{"a pod that is being shrunk still has what it had", two().replicas("a", template("a", 4, 1), "w1").
			replicas("b", template("b", 1, 1), "w2").pod(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}}}}
		}), nil, fit.NoNode},
		{"finished pods take no room", two().replicas("a", template("a", 8, 1), "w1", "w2").pod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), nil, fit.Room},

		{"three nodes, none has room for all", newCluster().node("w1", 8, 16).node("w2", 8, 16).node("w3", 8, 16).
			replicas("a", template("a", 1, 1), "w1", "w1", "w1", "w1", "w1", "w1").replicas("b", template("b", 4, 1), "w2", "w3"), nil, fit.Room},
		{"three nodes, others may fill them", newCluster().node("w1", 8, 16).node("w2", 8, 16).node("w3", 8, 16).
			replicas("a", template("a", 3, 1), "w1", "w1").replicas("c", template("c", 1, 1), "w1", "w1").replicas("b", template("b", 4, 1), "w2", "w3"), nil, fit.NoRoom},

		{"selector that no other node has", two().replicas("a", template("a", 1, 1, selecting("disk", "ssd")), "w1"), nil, fit.NoNode},
		{"selector that another node has", two(labelled("disk", "ssd")).replicas("a", template("a", 1, 1, selecting("disk", "ssd")), "w1"), nil, fit.Room},
		{"affinity to its node", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"w1"}}}}},
			}}}
		}), "w1"), nil, fit.NoNode},
		{"bound ones do not take the room of others", newCluster().node("w1", 8, 16).node("w2", 8, 16, labelled("disk", "ssd")).node("w3", 8, 16).
			replicas("a", template("a", 8, 1, selecting("disk", "ssd")), "w1").replicas("b", template("b", 8, 1, selecting(corev1.LabelHostname, "w3")), "w1"), nil, fit.Room},

		{"tainted", two(tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1"), nil, fit.NoNode},
		{"tainted against running", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", small, "w1"), nil, fit.NoNode},
		{"tainted a little", two(tainted(corev1.TaintEffectPreferNoSchedule)).replicas("a", small, "w1"), nil, fit.Room},
		{"tolerated", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", template("a", 1, 1, tolerating(tolerates)), "w1"), nil, fit.Room},
		{"tolerated for a minute", two(tainted(corev1.TaintEffectNoExecute)).replicas("a", template("a", 1, 1, tolerating(
			corev1.Toleration{Key: "for", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](60), Effect: corev1.TaintEffectNoExecute})), "w1"), nil, fit.NoNode},
		{"tolerates everything, also the cordon", two().replicas("a", template("a", 1, 1, tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})), "w1"), nil, fit.NotFollowed},

		{"another operating system that nothing keeps it from", two(labelled(os, "windows")).replicas("a", small, "w1"), nil, fit.OtherSystem},
		{"another operating system that a taint keeps it from", two(labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1"), nil, fit.NoNode},
		{"another operating system that its selector keeps it from", newCluster().node("w1", 8, 16, labelled(os, "linux")).node("w2", 8, 16, labelled(os, "windows")).
			replicas("a", template("a", 1, 1, selecting(os, "linux")), "w1"), nil, fit.NoNode},
		{"room elsewhere, and another operating system", two().node("w3", 8, 16, labelled(os, "windows")).replicas("a", small, "w1"), nil, fit.OtherSystem},
		{"room elsewhere, and another operating system behind a taint", two().node("w3", 8, 16, labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).
			replicas("a", small, "w1"), nil, fit.Room},
		{"room on another operating system only, behind a taint that is tolerated", two(labelled(os, "windows"), tainted(corev1.TaintEffectNoSchedule)).
			replicas("a", template("a", 1, 1, tolerating(tolerates)), "w1"), nil, fit.OtherSystem},
		{"another operating system, full", two(labelled(os, "windows")).node("w3", 8, 16).replicas("a", template("a", 4, 1), "w1").replicas("b", template("b", 8, 1), "w2"), nil, fit.OtherSystem},
		{"from Windows to Windows", newCluster().node("w1", 8, 16, labelled(os, "windows")).node("w2", 8, 16, labelled(os, "windows")).node("w3", 8, 16, labelled(os, "linux")).
			replicas("a", template("a", 1, 1, selecting(os, "windows")), "w1"), nil, fit.Room},
		{"from Windows to Linux", newCluster().node("w1", 8, 16, labelled(os, "windows")).node("w2", 8, 16).replicas("a", small, "w1"), nil, fit.OtherSystem},

		{"not ready", two(func(node *corev1.Node) { node.Status.Conditions[1].Status = corev1.ConditionUnknown }).replicas("a", small, "w1"), nil, fit.NoNode},
		{"under pressure", two(func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionTrue }).replicas("a", small, "w1"), nil, fit.NoNode},
		{"cordoned", two(func(node *corev1.Node) { node.Spec.Unschedulable = true }).replicas("a", small, "w1"), nil, fit.NoNode},
		{"being deleted", two(func(node *corev1.Node) { node.DeletionTimestamp = &now }).replicas("a", small, "w1"), nil, fit.NoNode},
		{"without a feature that its node has", newCluster().node("w1", 8, 16, func(node *corev1.Node) { node.Status.DeclaredFeatures = []string{"New"} }).
			node("w2", 8, 16).replicas("a", small, "w1"), nil, fit.NoNode},

		{"kept away from its like", two().replicas("a", template("a", 1, 1, without("a", corev1.LabelHostname)), "w1", "w2"), nil, fit.NoNode},
		{"kept away from its like, with a node to spare", two().node("w3", 8, 16).replicas("a", template("a", 1, 1, without("a", corev1.LabelHostname)), "w1", "w2"), nil, fit.Room},
		{"somebody there keeps it away", two().replicas("a", small, "w1").replicas("b", template("b", 1, 1, without("a", corev1.LabelHostname)), "w2"), nil, fit.NoNode},
		{"keeps away from a whole zone", newCluster().node("w1", 8, 16, labelled(zone, "z1")).node("w2", 8, 16, labelled(zone, "z2")).node("w3", 8, 16, labelled(zone, "z2")).
			replicas("a", template("a", 1, 1, without("b", zone)), "w1").replicas("b", template("b", 1, 1), "w3"), nil, fit.NoNode},
		{"two that move keep away from each other", two().replicas("a", template("a", 1, 1, without("b", corev1.LabelHostname)), "w1").replicas("b", small2("b"), "w1"), nil, fit.NoRoom},
		{"two that move keep away from each other, with a node each", two().node("w3", 8, 16).
			replicas("a", template("a", 1, 1, without("b", corev1.LabelHostname)), "w1").replicas("b", small2("b"), "w1"), nil, fit.Room},
		{"two that move keep out of each other's zone", newCluster().node("w1", 8, 16, labelled(zone, "z1")).node("w2", 8, 16, labelled(zone, "z2")).node("w3", 8, 16, labelled(zone, "z2")).
			replicas("a", template("a", 1, 1, without("b", zone)), "w1").replicas("b", small2("b"), "w1"), nil, fit.NoRoom},
		{"another namespace is not meant", two().replicas("a", template("a", 1, 1, without("b", corev1.LabelHostname)), "w1").
			replicas("b", small2("b"), "w2").pod(func(pod *corev1.Pod) { pod.Namespace = "other" }), nil, fit.Room},
		{"another namespace may be meant", two().replicas("a", template("a", 1, 1, without("b", corev1.LabelHostname, inAnyNamespace)), "w1").
			replicas("b", small2("b"), "w2").pod(func(pod *corev1.Pod) { pod.Namespace = "other" }), nil, fit.NoNode},

		{"near a pod that stays", two().replicas("a", template("a", 1, 1, with("b", corev1.LabelHostname)), "w1").replicas("b", small2("b"), "w2"), nil, fit.Room},
		{"near a pod that moves too", two().replicas("a", template("a", 1, 1, with("b", corev1.LabelHostname)), "w1").replicas("b", small2("b"), "w1"), nil, fit.NoNode},
		{"near a pod that ends", two().replicas("a", template("a", 1, 1, with("b", corev1.LabelHostname)), "w1").replicas("b", small2("b"), "w2").
			pod(func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }), nil, fit.NoNode},
		{"near its like, which is nowhere else", two().replicas("a", template("a", 1, 1, with("a", corev1.LabelHostname)), "w1"), nil, fit.NoNode},
		{"near a pod of a namespace that is not known", two().replicas("a", template("a", 1, 1, with("b", corev1.LabelHostname, inAnyNamespace)), "w1").replicas("b", small2("b"), "w2").
			pod(func(pod *corev1.Pod) { pod.Namespace = "other" }), nil, fit.NoNode},

		{"host port taken", two().replicas("a", template("a", 1, 1, hostPort(443)), "w1", "w2"), nil, fit.NoNode},
		{"host port free", two().replicas("a", template("a", 1, 1, hostPort(443)), "w1").replicas("b", template("b", 1, 1, hostPort(80)), "w2"), nil, fit.Room},
		{"two that move want one host port", two().replicas("a", template("a", 1, 1, hostPort(443)), "w1").replicas("b", template("b", 1, 1, hostPort(443)), "w1"), nil, fit.NoRoom},

		{"budget allows it", two().replicas("a", small, "w1", "w1").budget("b", "a", 2), nil, fit.Room},
		{"budget allows fewer", two().replicas("a", small, "w1", "w1").budget("b", "a", 1), nil, fit.Budgeted},
		{"budget never lets go", two().replicas("a", small, "w1").budget("b", "a", 0), nil, fit.Budgeted},
		{"budget over others", two().replicas("a", small, "w1").replicas("c", small2("c"), "w2").budget("b", "c", 0), nil, fit.Room},
		{"several budgets", two().replicas("a", small, "w1").budget("b", "a", 9).budget("c", "a", 9), nil, fit.Budgeted},
		{"budget that was just changed", func() *builder {
			b := two().replicas("a", small, "w1").budget("b", "a", 9)
			b.Budgets[0].Generation = 1
			return b
		}(), nil, fit.Budgeted},
		{"budget over a pod that ends anyway", two().replicas("a", small, "w1").pod(func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }).budget("b", "a", 0), nil, fit.Room},

		{"nobody makes it again", two().replicas("a", small, "w1").pod(func(pod *corev1.Pod) { pod.OwnerReferences = nil }), nil, fit.NoSuccessor},
		{"a job makes it again, or not", two().replicas("a", small, "w1").pod(func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "batch/v1", "Job"
		}), nil, fit.NoSuccessor},
		{"its replica set is gone", two().replicas("a", small, "w1").pod(func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "old" }), nil, fit.NoSuccessor},
		{"mirrors of static pods stay", two().replicas("a", template("a", 8, 1), "w1").pod(mirrored).replicas("b", template("b", 8, 1), "w2"), nil, fit.Room},
		{"pods of daemon sets stay", two().replicas("a", template("a", 8, 1), "w1").pod(func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = "DaemonSet" }).
			replicas("b", template("b", 8, 1), "w2"), nil, fit.Room},
		{"stateful", two().stateful("a", "v1", small, "w1"), nil, fit.Room},
		{"stateful, being updated", two().stateful("a", "v0", small, "w1"), nil, fit.NoSuccessor},
		{"stateful, update not seen", func() *builder {
			b := two().stateful("a", "v1", small, "w1")
			b.StatefulSets[0].Generation = 1
			return b
		}(), nil, fit.NoSuccessor},
		{"template requests more", changed(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}), nil, fit.NoSuccessor},
		{"template selects other nodes", changed(func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), nil, fit.NoSuccessor},
		{"template has other neighbours", changed(func(t *corev1.PodTemplateSpec) { without("b", zone)(&t.Spec) }), nil, fit.NoSuccessor},
		{"template has other labels", changed(func(t *corev1.PodTemplateSpec) { t.Labels["app"] = "b" }), nil, fit.NoSuccessor},
		{"template has host ports", changed(func(t *corev1.PodTemplateSpec) { hostPort(80)(&t.Spec) }), nil, fit.NoSuccessor},
		{"template names the node", changed(func(t *corev1.PodTemplateSpec) { t.Spec.NodeName = "w1" }), nil, fit.NoSuccessor},
		{"template has gates", changed(func(t *corev1.PodTemplateSpec) { t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), nil, fit.NotFollowed},
		{"template has a volume", changed(func(t *corev1.PodTemplateSpec) {
			volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})(&t.Spec)
		}), nil, fit.Volumes},
		{"the pod was made to tolerate more", two(tainted(corev1.TaintEffectNoSchedule)).replicas("a", small, "w1").pod(func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerates)
		}), nil, fit.NoSuccessor},

		{"volumes that are the same everywhere", two().replicas("a", template("a", 1, 1,
			volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
			volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}),
			volume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}})), "w1"), nil, fit.Room},
		{"claimed volume", two().replicas("a", template("a", 1, 1, volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}})), "w1"), nil, fit.Volumes},
		{"folder of the node", two().replicas("a", template("a", 1, 1, volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})), "w1"), nil, fit.Volumes},

		{"spread that must hold", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule}}
		}), "w1"), nil, fit.NotFollowed},
		{"spread if possible", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}), "w1"), nil, fit.Room},
		{"another scheduler", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) { spec.SchedulerName = "mine" }), "w1"), nil, fit.NotFollowed},
		{"claims a device", two().replicas("a", template("a", 1, 1, func(spec *corev1.PodSpec) {
			spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}), "w1"), nil, fit.NotFollowed},

		{"pods wait already", two().replicas("a", small, "w1").replicas("b", small2("b"), ""), nil, fit.Unsettled},
		{"both leave", two().replicas("a", small, "w1", "w2"), []string{"w1", "w2"}, fit.NoNode},
		{"two leave for a third", two().node("w3", 8, 16).replicas("a", template("a", 4, 1), "w1", "w2"), []string{"w1", "w2"}, fit.Room},
		{"two leave for a third that has room for one", two().node("w3", 7, 16).replicas("a", template("a", 4, 1), "w1", "w2"), []string{"w1", "w2"}, fit.NoRoom},
		{"a node that is not there", two(), []string{"w9"}, fit.NotRead},
		{"pods of a node that is not well may come too", newCluster().node("w1", 8, 16).node("w2", 8, 16).node("w3", 8, 16, func(node *corev1.Node) { node.Status.Conditions[1].Status = corev1.ConditionFalse }).
			replicas("a", template("a", 5, 1), "w1", "w3"), nil, fit.NoRoom},
		{"a pod that is being replaced elsewhere may come too", two().replicas("a", template("a", 3, 1), "w1", "w2").pod(func(pod *corev1.Pod) { pod.DeletionTimestamp = &now }), nil, fit.NoRoom},
	} {
		t.Run(test.name, func(t *testing.T) {
			leaving := test.leaving
			if leaving == nil {
				leaving = []string{"w1"}
			}
			before := (&builder{test.cluster.Cluster}).copied()
			got := fit.Check(test.cluster.Cluster, leaving...)
			if got.Reason != test.want || got.Fits != (test.want == fit.Room) {
				t.Errorf("%+v, want %s", got, test.want)
			}
			if got.Message == "" || (got.Detail == "") != got.Fits {
				t.Errorf("message %q, detail %q", got.Message, got.Detail)
			}
			if again := fit.Check(test.cluster.Cluster, leaving...); again != got {
				t.Errorf("asked again: %+v, before %+v", again, got)
			}
			unchanged(t, before, test.cluster.Cluster)
		})
	}
}

func small2(app string) corev1.PodTemplateSpec { return template(app, 1, 1) }

func mirrored(pod *corev1.Pod) {
	pod.OwnerReferences[0].Kind, pod.Annotations = "Node", map[string]string{corev1.MirrorPodAnnotationKey: "x"}
}

// changed is a pod whose template was changed after it was made.
func changed(change func(*corev1.PodTemplateSpec)) *builder {
	b := two().replicas("a", template("a", 1, 1), "w1")
	b.ReplicaSets[0].Spec.Template = *b.ReplicaSets[0].Spec.Template.DeepCopy()
	change(&b.ReplicaSets[0].Spec.Template)
	return b
}

func TestCheckNeedsEverything(t *testing.T) {
	for name, forget := range map[string]func(*fit.Cluster){
		"nodes":         func(c *fit.Cluster) { c.Nodes = nil },
		"pods":          func(c *fit.Cluster) { c.Pods = nil },
		"budgets":       func(c *fit.Cluster) { c.Budgets = nil },
		"replica sets":  func(c *fit.Cluster) { c.ReplicaSets = nil },
		"stateful sets": func(c *fit.Cluster) { c.StatefulSets = nil },
	} {
		b := two()
		forget(&b.Cluster)
		if got := fit.Check(b.Cluster, "w1"); got.Fits || got.Reason != fit.NotRead {
			t.Errorf("without %s: %+v", name, got)
		}
	}
}

// Only those of apps/v1 are what they seem.
func TestForeignKindsOfTheSameName(t *testing.T) {
	b := two().replicas("a", template("a", 1, 1), "w1").pod(func(pod *corev1.Pod) { pod.OwnerReferences[0].APIVersion = "example.org/v1" })
	if got := fit.Check(b.Cluster, "w1"); got.Reason != fit.NoSuccessor {
		t.Errorf("a ReplicaSet of another group: %+v", got)
	}
	b = two().replicas("a", template("a", 1, 1), "w1").pod(func(pod *corev1.Pod) {
		pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "example.org/v1", "DaemonSet"
	})
	if got := fit.Check(b.Cluster, "w1"); got.Reason != fit.NoSuccessor {
		t.Errorf("a DaemonSet of another group: %+v", got)
	}
}
