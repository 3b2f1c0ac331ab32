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

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// The labels of the nodes that have a member of etcd.
const (
	MasterRole  = "node-role.kubernetes.io/master"
	ArbiterRole = "node-role.kubernetes.io/arbiter"
)

const (
	etcdRole = "node-role.kubernetes.io/etcd"

	containerName = "guard"
	clientMount   = "/etc/etcd-guard/client"
	caMount       = "/etc/etcd-guard/ca"
	// nobody needs no right but that of reading its certificates.
	nobody = 65534
)

var (
	// ErrHost is returned for a Host that NewHost did not make.
	ErrHost = errors.New("empty Host: make it with NewHost")
	// ErrNoTopology is returned for a Cluster that was not read from an Infrastructure object, such as the zero Cluster.
	ErrNoTopology = topology.ErrClusterNotRead
	// ErrNoMembers is returned for a number of members that no cluster with etcd can have. Where a guard is made there is an API server,
	// which stores it in at least one member.
	ErrNoMembers = errors.New("no members of etcd: count its voting members, or the nodes that are to have one, whichever are more")
	// ErrNoNodes is returned where none of the nodes is to have a member of etcd: as long as the nodes are not read, no guard is deleted.
	ErrNoNodes = errors.New("none of the nodes is to have a member of etcd: read the control-plane nodes")
	// ErrNoImage is returned for guards without an image, which the API server would refuse.
	ErrNoImage = errors.New("no image for the guards: pass one with curl and sleep to NewHost")
)

// Host is what an operator knows about the cluster for which it makes a guard. NewHost makes one; every function that takes a Host
// returns ErrHost for the zero value.
type Host struct {
	// mode is the topology that decides, one of the five. It is empty in the zero Host only.
	mode    configv1.TopologyMode
	members int
	image   string
}

// NewHost reads what matters about a guard: the cluster, as topology.FromInfrastructure read it; how many voting members etcd has, or
// nodes that are to have one, whichever are more; and the image of the guards, with curl and sleep in it, as the release's cli image has.
// Fewer members than the topology expects count as many as it expects. Without an image only numbers and budgets can be asked for.
//
// Errors: ErrNoTopology, and ErrNoMembers, with the number, for less than one where etcd is in the cluster.
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

func (h Host) made() error {
	if h.mode == "" {
		return ErrHost
	}
	return nil
}

// wantsPods reports whether there are to be guards, of which the image is then known. Errors: ErrHost, ErrNoImage.
func (h Host) wantsPods() (bool, error) {
	switch err := h.made(); {
	case err != nil:
		return false, err
	case !guarded(h.mode):
		return false, nil
	case h.image == "":
		return false, ErrNoImage
	}
	return true, nil
}

// modeOf is the topology that decides, one of the five.
func modeOf(cluster topology.Cluster) configv1.TopologyMode {
	return topology.ReadingOf(cluster.ControlPlane.Mode).Mode
}

// Guarded reports whether there is a quorum to guard in this cluster, or the guard is off (R-ETC-2): with SingleReplica
// there is one member, and with External etcd is elsewhere. The error is ErrNoTopology.
func Guarded(cluster topology.Cluster) (bool, error) {
	if err := cluster.Validate(); err != nil {
		return false, err
	}
	return guarded(modeOf(cluster)), nil
}

func guarded(mode configv1.TopologyMode) bool {
	switch mode {
	case configv1.SingleReplicaTopologyMode, configv1.ExternalTopologyMode:
		return false
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode:
		return true
	}
	return true
}

// Size is the number of guards (R-ETC-2): one per member, and never fewer than the topology expects. While there are
// fewer nodes than that, some guards stay Pending, which the budget counts as members that are down. The error is
// ErrHost.
func Size(h Host) (int, error) {
	if err := h.made(); err != nil {
		return 0, err
	}
	return h.size(), nil
}

func (h Host) size() int { return max(expectedMembers(h.mode), h.members) }

// Budget is how many of Size guards may be evicted at once: as many as Tolerated says. The error is ErrHost.
//
// Two members of DualReplica are the exception: one of them may go. Their arithmetic allows none, and with that no node
// could be drained for an update, ever (R-SNO-3). What keeps such a cluster alive is not the quorum of two but fencing,
// which lets the member that is left go on alone; the guard sees to it that the two never go together. Upstream lets
// one go as well (minAvailable is one less than the nodes, U-ETC-7).
func Budget(h Host) (int, error) {
	if err := h.made(); err != nil {
		return 0, err
	}
	return h.budget(), nil
}

func (h Host) budget() int {
	if fencing(h.mode, h.size()) {
		return 1
	}
	return Tolerated(h.size())
}

// fencing reports whether the members are a pair of which either goes on alone, because it fences the other.
func fencing(mode configv1.TopologyMode, members int) bool {
	return mode == configv1.DualReplicaTopologyMode && members == 2
}

// Nodes are those of the nodes that have a member of etcd, or are to have one: with the master role, and with
// HighlyAvailableArbiter also those with the arbiter role. With External there are none. The error is ErrNoTopology.
func Nodes(cluster topology.Cluster, nodes []corev1.Node) ([]corev1.Node, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	return memberNodes(modeOf(cluster), nodes), nil
}

func memberNodes(mode configv1.TopologyMode, nodes []corev1.Node) []corev1.Node {
	if mode == configv1.ExternalTopologyMode {
		return nil
	}
	var members []corev1.Node
	for _, node := range nodes {
		_, master := node.Labels[MasterRole]
		_, arbiter := node.Labels[ArbiterRole]
		if master || (arbiter && mode == configv1.HighlyAvailableArbiterMode) {
			members = append(members, node)
		}
	}
	return members
}

// Deployment is the guard, or nil where there must be none and an existing one should be deleted. It has Size replicas that never
// share a node, and is rolled out one pod at a time: none goes before the others are ready. A pod that was evicted does not come
// back to a cordoned node, so the budget counts it as long as the node is away.
//
// A guard is ready while the etcd on its node, asked with the client certificate, says that it is healthy. The namespace
// has no security admission of its own, so the guard asks for no privilege by itself.
//
// Errors: ErrHost, ErrNoImage. With an error nothing is to be made and nothing to be deleted.
func Deployment(h Host) (*appsv1.Deployment, error) {
	if wanted, err := h.wantsPods(); err != nil || !wanted {
		return nil, err
	}
	return h.deployment(), nil
}

func (h Host) deployment() *appsv1.Deployment {
	pod := guardPod(h.image)
	pod.Tolerations = append(workload.Tolerations(topology.PlacementOf(topology.ControlPlanePool)),
		corev1.Toleration{Key: etcdRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	)
	pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: guardLabels()},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
	if h.mode == configv1.HighlyAvailableArbiterMode {
		pod.Tolerations = append(pod.Tolerations,
			corev1.Toleration{Key: ArbiterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		pod.Affinity.NodeAffinity = anyRole(MasterRole, ArbiterRole)
	} else {
		pod.NodeSelector = topology.PlacementOf(topology.ControlPlanePool).NodeSelector()
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: GuardName, Labels: guardLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(h.size())), //nolint:gosec // a number of nodes
			Selector: &metav1.LabelSelector{MatchLabels: guardLabels()},
			Strategy: workload.RollingUpdate(topology.Rollout{MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(0)}),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: guardLabels(), Annotations: guardAnnotations()},
				Spec:       pod,
			},
		},
	}
}

// anyRole selects nodes that have any of the roles, which a node selector cannot say.
func anyRole(roles ...string) *corev1.NodeAffinity {
	terms := &corev1.NodeSelector{}
	for _, role := range roles {
		terms.NodeSelectorTerms = append(terms.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: role, Operator: corev1.NodeSelectorOpExists}},
		})
	}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
}

// DisruptionBudget is the budget over the guards of Deployment, or nil where there must be none and an existing one should be
// deleted. It counts from the replicas (maxUnavailable, as in the static manifest), and a guard that is not ready counts
// as gone: while etcd has members that are down, as many fewer may go. Such a guard may itself be evicted only while the others
// hold the quorum. The error is ErrHost.
func DisruptionBudget(h Host) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil || !guarded(h.mode) {
		return nil, err
	}
	return h.disruptionBudget(), nil
}

func (h Host) disruptionBudget() *policyv1.PodDisruptionBudget {
	budget := disruptionBudget(GuardName, guardLabels())
	budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt(h.budget()))
	return budget
}

// Pods are the guards in the shape that today's operators use: one pod for each of Nodes, bound to it by spec.nodeName, so that
// no scheduler and no Deployment takes part. A node that is cordoned is left out, because a guard that comes back there would
// keep a drain from ending; a guard that is still there is not to be deleted for it. nil where there must be none, and existing
// ones should be deleted; empty and not nil where every node is cordoned.
//
// Errors: ErrHost, ErrNoImage, and ErrNoNodes where none of the nodes is one of Nodes. With an error nothing is to be made and nothing
// to be deleted.
func Pods(h Host, nodes []corev1.Node) ([]*corev1.Pod, error) {
	if wanted, err := h.wantsPods(); err != nil || !wanted {
		return nil, err
	}
	members := memberNodes(h.mode, nodes)
	if len(members) == 0 {
		return nil, ErrNoNodes
	}
	pods := []*corev1.Pod{}
	for _, node := range members {
		if cordoned(node) {
			continue
		}
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

// PodsDisruptionBudget is the budget over Pods, or nil where there must be none and an existing one should be deleted. Over pods that
// no controller made a budget can only count from below (minAvailable). The error is ErrHost.
func PodsDisruptionBudget(h Host) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil || !guarded(h.mode) {
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

// podName is unique for each node, and short enough for a pod also where the node's name is as long as a name may be.
func podName(node string) string {
	const longest, digits = 253, 10
	if len(PodPrefix)+len(node) <= longest {
		return PodPrefix + node
	}
	sum := sha256.Sum256([]byte(node))
	return PodPrefix + strings.TrimRight(node[:longest-len(PodPrefix)-digits-1], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// guardAnnotations let clusters that partition their CPUs place the guard on the management's share.
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
			Name:                     containerName,
			Image:                    image,
			ImagePullPolicy:          corev1.PullIfNotPresent,
			Command:                  []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
			}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: healthCommand()}},
				TimeoutSeconds:   3,
				PeriodSeconds:    5,
				SuccessThreshold: 1,
				FailureThreshold: 3,
			},
			SecurityContext: &corev1.SecurityContext{
				Privileged:               ptr.To(false),
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				RunAsNonRoot:             ptr.To(true),
				RunAsUser:                ptr.To[int64](nobody),
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

// healthCommand asks the etcd of the node, through the host's network. /health is a linearizable read: a member without quorum
// answers 503, and --fail makes an error of that.
func healthCommand() []string {
	return []string{"curl", "--silent", "--show-error", "--fail", "--max-time", "2",
		"--cacert", caMount + "/ca-bundle.crt", "--cert", clientMount + "/tls.crt", "--key", clientMount + "/tls.key",
		"https://localhost:2379/health"}
}
