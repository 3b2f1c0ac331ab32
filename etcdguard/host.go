// SPDX-License-Identifier: Apache-2.0

package etcdguard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// Labels of the nodes that have a member of etcd.
const (
	MasterRole  = "node-role.kubernetes.io/master"
	ArbiterRole = "node-role.kubernetes.io/arbiter"
)

// ContainerName is the name of the guard's only container.
const ContainerName = "guard"

const (
	podPrefix   = "etcd-guard-"
	clientMount = "/etc/etcd-guard/client"
	caMount     = "/etc/etcd-guard/ca"
)

var (
	// ErrHost is returned for the zero Host.
	ErrHost = errors.New("empty Host: make it with NewHost")
	// ErrNoTopology is returned for a Cluster that was not read from an Infrastructure.
	ErrNoTopology = topology.ErrClusterNotRead
	// ErrNoMembers is returned for an impossible number of members.
	ErrNoMembers = errors.New("no members of etcd: count its voting members, or the nodes that are to have one, whichever are more")
	// ErrNoNodes is returned for nodes of which none is to have a member of etcd.
	ErrNoNodes = errors.New("none of the nodes is to have a member of etcd: read the control-plane nodes")
	// ErrNoImage is returned for guards without an image.
	ErrNoImage = errors.New("no image for the guards: pass one with curl and sleep to NewHost")
)

// Host describes the cluster for which an operator creates guards. NewHost returns one.
type Host struct {
	mode    configv1.TopologyMode
	members int
	image   string
}

// NewHost takes the number of etcd's voting members or of nodes that are to have one, whichever is greater, and the
// image of the guards, which needs curl and sleep and may be empty for sizes and budgets. Errors: ErrNoTopology,
// ErrNoMembers.
func NewHost(cluster topology.Cluster, members int, image string) (Host, error) {
	if err := cluster.Validate(); err != nil {
		return Host{}, err
	}
	mode := modeOf(cluster)
	if members < 0 || (members == 0 && mode != configv1.ExternalTopologyMode) {
		return Host{}, fmt.Errorf("%w: got %d", ErrNoMembers, members)
	}
	return Host{mode: mode, members: members, image: image}, nil
}

func (h Host) wanted(pods bool) (bool, error) {
	switch {
	case h.mode == "":
		return false, ErrHost
	case pods && guarded(h.mode) && h.image == "":
		return false, ErrNoImage
	}
	return guarded(h.mode), nil
}

func modeOf(cluster topology.Cluster) configv1.TopologyMode {
	return topology.ReadingOf(cluster.ControlPlane.Mode).Mode
}

// guarded reports whether the topology needs guards: not SingleReplica and External (R-ETC-2).
func guarded(mode configv1.TopologyMode) bool { return ExpectedMembers(mode) > 1 }

// Size returns the number of guards (R-ETC-2): one per member, at least as many as the topology expects. The error is
// ErrHost.
func Size(h Host) (int, error) {
	if _, err := h.wanted(false); err != nil {
		return 0, err
	}
	return h.size(), nil
}

func (h Host) size() int { return max(ExpectedMembers(h.mode), h.members) }

// budget returns how many guards may be evicted at once. With DualReplica it is 1 of 2, or no node could be drained
// (R-SNO-3, U-ETC-7); fencing keeps the other member working.
func (h Host) budget() int {
	if fencing(h.mode, h.size()) {
		return 1
	}
	return failureTolerance(h.size())
}

func fencing(mode configv1.TopologyMode, members int) bool {
	return mode == configv1.DualReplicaTopologyMode && members == 2
}

// MemberNodes returns the nodes that have a member of etcd, or are to have one.
func MemberNodes(mode configv1.TopologyMode, nodes []corev1.Node) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node corev1.Node) bool {
		_, master := node.Labels[MasterRole]
		_, arbiter := node.Labels[ArbiterRole]
		return !master && (!arbiter || mode != configv1.HighlyAvailableArbiterMode)
	})
}

// Deployment returns the guard, or nil if an existing one is to be deleted. Errors: ErrHost, ErrNoImage.
func Deployment(h Host) (*appsv1.Deployment, error) {
	if wanted, err := h.wanted(true); !wanted {
		return nil, err
	}
	pod := guardPod(h.image)
	pod.Tolerations = append(workload.Tolerations(topology.PlacementOf(topology.ControlPlanePool)),
		tolerate("node-role.kubernetes.io/etcd", corev1.TaintEffectNoSchedule),
		tolerate(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		tolerate(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
	)
	pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: GuardLabels()},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
	if h.mode == configv1.HighlyAvailableArbiterMode {
		pod.Tolerations = append(pod.Tolerations, tolerate(ArbiterRole, corev1.TaintEffectNoSchedule))
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{withRole(MasterRole), withRole(ArbiterRole)},
		}}
	} else {
		pod.NodeSelector = topology.PlacementOf(topology.ControlPlanePool).NodeSelector()
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: GuardName, Labels: GuardLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(h.size())), //nolint:gosec // a number of nodes
			Selector: &metav1.LabelSelector{MatchLabels: GuardLabels()},
			Strategy: workload.RollingUpdate(topology.Rollout{MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(0)}),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: GuardLabels(), Annotations: guardAnnotations()},
				Spec:       pod,
			},
		},
	}, nil
}

func tolerate(key string, effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
}

func withRole(role string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: role, Operator: corev1.NodeSelectorOpExists}}}
}

// DisruptionBudget returns the budget over Deployment's pods, or nil if an existing one is to be deleted. The error is
// ErrHost.
func DisruptionBudget(h Host) (*policyv1.PodDisruptionBudget, error) {
	if wanted, err := h.wanted(false); !wanted {
		return nil, err
	}
	budget := disruptionBudget(GuardName, GuardLabels())
	budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt(h.budget()))
	return budget, nil
}

// Pods returns guards as current operators create them: a pod for each node that has a member, or is to have one, and
// is not cordoned. nil means that existing guards are to be deleted. Errors: ErrHost, ErrNoImage, ErrNoNodes.
func Pods(h Host, nodes []corev1.Node) ([]*corev1.Pod, error) {
	if wanted, err := h.wanted(true); !wanted {
		return nil, err
	}
	members := MemberNodes(h.mode, nodes)
	if len(members) == 0 {
		return nil, ErrNoNodes
	}
	pods := []*corev1.Pod{}
	for _, node := range slices.DeleteFunc(members, cordoned) {
		pod := &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: podName(node.Name), Labels: podLabels(), Annotations: guardAnnotations()},
			Spec:       guardPod(h.image),
		}
		pod.Spec.NodeName = node.Name
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pods = append(pods, pod)
	}
	return pods, nil
}

// PodsDisruptionBudget returns the budget over Pods, or nil if an existing one is to be deleted. The error is ErrHost.
func PodsDisruptionBudget(h Host) (*policyv1.PodDisruptionBudget, error) {
	if wanted, err := h.wanted(false); !wanted {
		return nil, err
	}
	budget := disruptionBudget(PodsBudgetName, podLabels())
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt(h.size() - h.budget()))
	return budget, nil
}

func disruptionBudget(name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:                   &metav1.LabelSelector{MatchLabels: labels},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.IfHealthyBudget),
		},
	}
}

func cordoned(node corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnschedulable && taint.Effect == corev1.TaintEffectNoSchedule
	})
}

// podName returns a unique name for each node, also if the node's name is too long for the prefix.
func podName(node string) string {
	const longest, digits = 253, 10
	if len(podPrefix)+len(node) <= longest {
		return podPrefix + node
	}
	sum := sha256.Sum256([]byte(node))
	return podPrefix + strings.TrimRight(node[:longest-len(podPrefix)-digits-1], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// guardAnnotations assign the guard to the management CPUs where the cluster has workload partitioning.
func guardAnnotations() map[string]string {
	return map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`}
}

func guardPod(image string) corev1.PodSpec {
	return corev1.PodSpec{
		HostNetwork:                   true,
		PriorityClassName:             "system-cluster-critical",
		TerminationGracePeriodSeconds: ptr.To[int64](3),
		AutomountServiceAccountToken:  ptr.To(false),
		Containers: []corev1.Container{{
			Name:                     ContainerName,
			Image:                    image,
			ImagePullPolicy:          corev1.PullIfNotPresent,
			Command:                  []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("5Mi")}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: healthCommand()}}, TimeoutSeconds: 3, PeriodSeconds: 5,
				SuccessThreshold: 1, FailureThreshold: 3,
			},
			SecurityContext: &corev1.SecurityContext{
				Privileged:               ptr.To(false),
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				RunAsNonRoot:             ptr.To(true),
				RunAsUser:                ptr.To[int64](65534),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: ClientSecret, MountPath: clientMount, ReadOnly: true},
				{Name: CABundle, MountPath: caMount, ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: ClientSecret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: ClientSecret, DefaultMode: ptr.To[int32](0o444)}}},
			{Name: CABundle, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: CABundle}, DefaultMode: ptr.To[int32](0o444)}}},
		},
	}
}

// healthCommand queries /health, a linearizable read: a member without quorum answers 503.
func healthCommand() []string {
	return []string{"curl", "--silent", "--show-error", "--fail", "--max-time", "2",
		"--cacert", caMount + "/ca-bundle.crt", "--cert", clientMount + "/tls.crt", "--key", clientMount + "/tls.key",
		"https://localhost:2379/health"}
}
