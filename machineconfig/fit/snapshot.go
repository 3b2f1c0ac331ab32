// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/solonode/sno/machineconfig/internal/nodestate"
)

// snapshot is the state of the cluster for the scheduler.
type snapshot struct {
	Cluster
	nodes []*nodeInfo
	// pods have a node, toPlace need another one, evicted are those of toPlace on draining nodes.
	pods, toPlace, evicted []*podInfo
}

type nodeInfo struct {
	node             *corev1.Node
	draining, usable bool // usable: healthy, not cordoned and not being deleted
	free             resources
}

type podInfo struct {
	*corev1.Pod
	on                     *nodeInfo
	moves                  bool
	requests               resources // of the replacement
	hostPorts              []corev1.ContainerPort
	affinity, antiAffinity []term
	candidates             []*nodeInfo // where the replacement may be placed, now or later
}

func newSnapshot(cluster Cluster, draining []string) (*snapshot, *Verdict) {
	s := &snapshot{Cluster: cluster}
	byName := map[string]*nodeInfo{}
	for i := range cluster.Nodes {
		node := &cluster.Nodes[i]
		info := &nodeInfo{node: node, draining: slices.Contains(draining, node.Name), free: resourcesOf(node.Status.Allocatable),
			usable: nodestate.Healthy(node) && !node.Spec.Unschedulable && node.DeletionTimestamp == nil}
		byName[node.Name], s.nodes = info, append(s.nodes, info)
	}
	for _, name := range draining {
		if byName[name] == nil {
			return s, no(ReasonNotRead, "node %s does not exist", name)
		}
	}
	for i := range cluster.Pods {
		pod := &cluster.Pods[i]
		switch on := byName[pod.Spec.NodeName]; {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName == "":
			return s, no(ReasonPodsWaitForANode, "pod %s/%s is pending", pod.Namespace, pod.Name)
		case on != nil:
			s.add(pod, on)
		}
	}
	return s, nil
}

func (s *snapshot) add(pod *corev1.Pod, on *nodeInfo) {
	p := &podInfo{Pod: pod, on: on, requests: requests(pod, resourcehelper.PodResourcesOptions{}), hostPorts: hostPorts(&pod.Spec)}
	p.affinity, p.antiAffinity = terms(pod)
	p.moves = !keptByDrains(pod) && (on.draining || !on.usable || pod.DeletionTimestamp != nil)
	s.pods = append(s.pods, p)
	// A pod that is being resized still occupies what it has.
	occupied := requests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
	for name, amount := range occupied {
		on.free[name] -= amount
	}
	if p.moves {
		s.toPlace = append(s.toPlace, p)
	}
	if p.moves && on.draining {
		s.evicted = append(s.evicted, p)
	}
}

// keptByDrains reports whether kubectl drain skips the pod.
func keptByDrains(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == "apps/v1"
}

// resources are in the scheduler's units: millicores of CPU, whole units of other resources, and 1 for each pod.
type resources map[corev1.ResourceName]int64

func resourcesOf(list corev1.ResourceList) resources {
	out := resources{}
	for name, quantity := range list {
		out[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			out[name] = quantity.MilliValue()
		}
	}
	return out
}

func requests(pod *corev1.Pod, options resourcehelper.PodResourcesOptions) resources {
	out := resourcesOf(resourcehelper.PodRequests(pod, options))
	out[corev1.ResourcePods] = 1
	return out
}

// hostPorts returns the host ports of a pod, also of init containers, since sidecars are among them.
func hostPorts(spec *corev1.PodSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, port := range container.Ports {
			if port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
			if port.HostPort > 0 {
				ports = append(ports, corev1.ContainerPort{HostPort: port.HostPort, Protocol: port.Protocol})
			}
		}
	}
	return ports
}

// checkReplacements checks that every evicted pod has a controller whose template needs no more than the pod, and no
// unsupported rules.
func (s *snapshot) checkReplacements() *Verdict {
	for _, p := range s.evicted {
		template, why := s.template(p.Pod)
		if why == "" {
			why = difference(p, template)
		}
		if why != "" {
			return no(ReasonSuccessorUnknown, "pod %s/%s: %s", p.Namespace, p.Name, why)
		}
		for _, spec := range []*corev1.PodSpec{&p.Spec, &template.Spec} {
			if i := slices.IndexFunc(spec.Volumes, dependsOnNode); i >= 0 {
				return no(ReasonVolumeTiesPodToNode, "pod %s/%s: volume %s", p.Namespace, p.Name, spec.Volumes[i].Name)
			}
			if why := unsupportedRule(spec); why != "" {
				return no(ReasonSchedulingNotFollowed, "pod %s/%s: %s", p.Namespace, p.Name, why)
			}
		}
	}
	return nil
}

// template returns the template of the pod's replacement, or why it is unknown.
func (s *snapshot) template(pod *corev1.Pod) (*corev1.PodTemplateSpec, string) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil, "no controller replaces it"
	}
	switch owner.APIVersion + " " + owner.Kind {
	case "apps/v1 ReplicaSet":
		i := slices.IndexFunc(s.ReplicaSets, func(set appsv1.ReplicaSet) bool { return set.UID == owner.UID })
		if i >= 0 {
			return &s.ReplicaSets[i].Spec.Template, ""
		}
	case "apps/v1 StatefulSet":
		i := slices.IndexFunc(s.StatefulSets, func(set appsv1.StatefulSet) bool { return set.UID == owner.UID })
		if i >= 0 {
			set := &s.StatefulSets[i]
			if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision != pod.Labels[appsv1.StatefulSetRevisionLabel] {
				return nil, "its StatefulSet is being updated"
			}
			return &set.Spec.Template, ""
		}
	default:
		return nil, "it is not known how a " + owner.Kind + " replaces it"
	}
	return nil, "its " + owner.Kind + " " + owner.Name + " does not exist"
}

// difference returns how a template differs from its pod in scheduling, except for what admission adds to every pod.
func difference(p *podInfo, template *corev1.PodTemplateSpec) string {
	for name, amount := range requests(&corev1.Pod{Spec: template.Spec}, resourcehelper.PodResourcesOptions{}) {
		if amount > p.requests[name] {
			return "its replacement requests more " + string(name)
		}
	}
	added := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !slices.ContainsFunc(template.Spec.Tolerations, func(of corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(t, of)
		})
	})
	switch {
	case !labels.ValidatedSetSelector(template.Labels).Matches(labels.Set(p.Labels)):
		return "its labels are not those of its template"
	case !labels.ValidatedSetSelector(template.Spec.NodeSelector).Matches(labels.Set(p.Spec.NodeSelector)):
		return "its node selector is not that of its template"
	case !equality.Semantic.DeepEqual(template.Spec.Affinity, p.Spec.Affinity):
		return "its affinity is not that of its template"
	case added:
		return "it tolerates what its template does not"
	case !slices.Equal(hostPorts(&template.Spec), p.hostPorts):
		return "its host ports are not those of its template"
	case template.Spec.NodeName != "":
		return "its template names the node"
	}
	return ""
}

func dependsOnNode(volume corev1.Volume) bool {
	return volume.ConfigMap == nil && volume.Secret == nil && volume.Projected == nil && volume.DownwardAPI == nil && volume.EmptyDir == nil
}

// unsupportedRule returns a scheduling rule that this package does not implement.
func unsupportedRule(spec *corev1.PodSpec) string {
	cordon := &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	switch {
	case spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName:
		return "it has another scheduler"
	case len(spec.SchedulingGates) > 0:
		return "it has scheduling gates"
	case len(spec.ResourceClaims) > 0:
		return "it has resource claims"
	case slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable != corev1.ScheduleAnyway
	}):
		return "it has required topology spread constraints"
	case corev1helpers.TolerationsTolerateTaint(logr.Discard(), spec.Tolerations, cordon, true):
		return "it tolerates a cordon, and its replacement may be placed on the same node"
	}
	return ""
}

// checkBudgets checks that budgets permit all evictions at once. The API server refuses to evict a pod with several
// budgets.
func (s *snapshot) checkBudgets() *Verdict {
	budgetOf := map[*podInfo]string{}
	for i := range s.Budgets {
		budget, evictions := &s.Budgets[i], int32(0)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		for _, p := range s.evicted {
			if p.DeletionTimestamp != nil || budget.Namespace != p.Namespace || (err == nil && !selector.Matches(labels.Set(p.Labels))) {
				continue
			}
			if budgetOf[p] != "" {
				return no(ReasonBudgetTooTight, "the budgets %s and %s both select pod %s/%s", budgetOf[p], budget.Name, p.Namespace, p.Name)
			}
			budgetOf[p] = budget.Name
			evictions++
		}
		stale := budget.Status.ObservedGeneration < budget.Generation
		if evictions > 0 && (stale || budget.Status.DisruptionsAllowed < evictions) {
			return no(ReasonBudgetTooTight, "budget %s/%s permits %d evictions of %d", budget.Namespace, budget.Name, budget.Status.DisruptionsAllowed, evictions)
		}
	}
	return nil
}
