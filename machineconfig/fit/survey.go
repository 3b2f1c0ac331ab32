package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// survey is a cluster, sorted for the check.
type survey struct {
	Cluster
	sites []*site
	// comers look for a node; those that are evicted must find one.
	comers []*comer
	// settled are all pods that have a node, the evicted ones included: those stand there until they have ended.
	settled []*resident
}

// site is a node and what is left of it.
type site struct {
	node *corev1.Node
	// leaving is drained. well tells that it may be counted on: ready, without pressure, open to pods.
	leaving, well bool
	free          amounts
	ports         []corev1.ContainerPort
}

// resident is a pod on its node.
type resident struct {
	pod   *corev1.Pod
	at    *site
	terms terms
	// moves tells that it will not stay there.
	moves bool
}

// comer is a pod that needs another node.
type comer struct {
	*resident
	evicted bool
	needs   amounts
	ports   []corev1.ContainerPort
	// lands are the nodes where it might end up.
	lands map[*site]bool
}

func newSurvey(cluster Cluster, leaving []string) (*survey, *Verdict) {
	s := &survey{Cluster: cluster}
	byName := map[string]*site{}
	for i := range cluster.Nodes {
		node := &cluster.Nodes[i]
		at := &site{node: node, leaving: slices.Contains(leaving, node.Name), well: well(node), free: capacity(node)}
		byName[node.Name], s.sites = at, append(s.sites, at)
	}
	for _, name := range leaving {
		if byName[name] == nil {
			v := doubt(NotRead, "node %s is not there", name)
			return nil, &v
		}
	}
	for i := range cluster.Pods {
		pod := &cluster.Pods[i]
		at := byName[pod.Spec.NodeName]
		switch {
		case finished(pod):
		case pod.Spec.NodeName == "":
			v := doubt(Unsettled, "pod %s/%s has no node yet", pod.Namespace, pod.Name)
			return nil, &v
		case at != nil:
			s.add(pod, at)
		}
	}
	return s, nil
}

func (s *survey) add(pod *corev1.Pod, at *site) {
	r := &resident{pod: pod, at: at, terms: termsOf(pod)}
	s.settled = append(s.settled, r)
	at.free.take(requested(pod))
	at.ports = append(at.ports, hostPorts(&pod.Spec)...)
	if stays(pod) || (!at.leaving && at.well && pod.DeletionTimestamp == nil) {
		return
	}
	r.moves = true
	s.comers = append(s.comers, &comer{
		resident: r, evicted: at.leaving, needs: needed(pod), ports: hostPorts(&pod.Spec), lands: map[*site]bool{},
	})
}

// stays tells what no drain moves, by the rules of kubectl drain: mirrors of static pods, and pods of daemon sets.
func stays(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == "apps/v1"
}

// finished pods take no room, and nobody waits for another one on their account.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Healthy reports whether a node's conditions are those of a node that can be counted on: Ready is there and True, and MemoryPressure, DiskPressure,
// PIDPressure and NetworkUnavailable are absent or False. Whether it takes pods is another question.
func Healthy(node *corev1.Node) bool {
	ready := false
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			ready = condition.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if condition.Status != corev1.ConditionFalse {
				return false
			}
		}
	}
	return ready
}

func well(node *corev1.Node) bool {
	return Healthy(node) && !node.Spec.Unschedulable && node.DeletionTimestamp == nil
}

// checkBudgets: each budget must let all evicted pods under it go at once. Several over a pod make the eviction API refuse.
func (s *survey) checkBudgets() *Verdict {
	asked := make([]int32, len(s.Budgets))
	for _, c := range s.comers {
		if !c.evicted || c.pod.DeletionTimestamp != nil {
			continue
		}
		over := -1
		for i := range s.Budgets {
			budget := &s.Budgets[i]
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			if budget.Namespace != c.pod.Namespace || (err == nil && !selector.Matches(labels.Set(c.pod.Labels))) {
				continue
			}
			if over >= 0 {
				v := doubt(Budgeted, "the budgets %s and %s both stand over pod %s/%s", s.Budgets[over].Name, budget.Name, c.pod.Namespace, c.pod.Name)
				return &v
			}
			over = i
			asked[i]++
		}
	}
	for i := range s.Budgets {
		budget := &s.Budgets[i]
		stale := budget.Status.ObservedGeneration < budget.Generation
		if asked[i] > 0 && (stale || budget.Status.DisruptionsAllowed < asked[i]) {
			v := doubt(Budgeted, "budget %s/%s allows %d evictions of %d", budget.Namespace, budget.Name, budget.Status.DisruptionsAllowed, asked[i])
			return &v
		}
	}
	return nil
}
