package fit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// checkPlacement implements the argument of the package's documentation.
func (s *snapshot) checkPlacement() *Verdict {
	for _, p := range s.toPlace {
		for _, on := range s.nodes {
			// A node that is full now may have room later.
			if !on.draining && tolerates(&p.Spec, on.node, true) && selects(p.Pod, on.node, true) {
				p.candidates = append(p.candidates, on)
			}
		}
	}
	for _, p := range s.evicted {
		if slices.ContainsFunc(p.candidates, func(on *nodeInfo) bool { return IsWindows(on.node) != IsWindows(p.on.node) }) {
			return no(ReasonOtherOperatingSystem, "pod %s/%s: no node selector and no taint keeps it from nodes of another operating system", p.Namespace, p.Name)
		}
		feasible, refusals := s.feasible(p)
		if len(feasible) == 0 {
			return no(ReasonNoNodeTakesPod, "pod %s/%s: %s", p.Namespace, p.Name, refusals)
		}
		if !s.alwaysPlaced(p, feasible) {
			return no(ReasonNotEnoughRoom, "pod %s/%s: %d nodes are feasible, but other pods may fill them first", p.Namespace, p.Name, len(feasible))
		}
	}
	return nil
}

// feasible returns the nodes where the pod could be placed now, and why the others are not feasible.
func (s *snapshot) feasible(p *podInfo) (nodes []*nodeInfo, refusals string) {
	apart := map[*podInfo][]string{}
	for _, other := range s.pods {
		if keys := separatingKeys(p, other); other != p && len(keys) > 0 {
			apart[other] = keys
		}
	}
	var refused []string
	for _, on := range s.nodes {
		if why := s.filter(on, p, apart); why != "" {
			refused = append(refused, on.node.Name+" is "+why)
		} else {
			nodes = append(nodes, on)
		}
	}
	return nodes, strings.Join(refused, ", ")
}

// filter returns why the node is not feasible for the pod; empty when it is.
func (s *snapshot) filter(on *nodeInfo, p *podInfo, apart map[*podInfo][]string) string {
	switch {
	case on.draining:
		return "draining"
	case !on.usable:
		return "unavailable"
	case !tolerates(&p.Spec, on.node, false):
		return "tainted"
	case !selects(p.Pod, on.node, false):
		return "not selected"
	case slices.ContainsFunc(p.on.node.Status.DeclaredFeatures, func(f string) bool { return !slices.Contains(on.node.Status.DeclaredFeatures, f) }):
		return "without declared features of its node"
	case !s.affinityHolds(p, on):
		return "not matching its pod affinity"
	}
	for name, amount := range p.requests {
		if amount > 0 && amount > on.free[name] {
			return "too full"
		}
	}
	for other, keys := range apart {
		if inSameDomain(other.on, on, keys) {
			return "excluded by anti-affinity or host ports"
		}
	}
	return ""
}

// tolerates reports whether a pod tolerates the taints of a node, and unless temporarily counts, for as long as it runs.
func tolerates(spec *corev1.PodSpec, node *corev1.Node, temporarily bool) bool {
	tolerations := slices.Clone(spec.Tolerations)
	if !temporarily {
		tolerations = slices.DeleteFunc(tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil })
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, temporarily)
	return !untolerated
}

// selects reports whether the pod's node selector and affinity select the node; unreadable is the answer when they cannot be read.
func selects(pod *corev1.Pod, node *corev1.Node, unreadable bool) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		return unreadable
	}
	return match
}

// competitor is another pod to place.
type competitor struct {
	*podInfo
	keys []string // of separatingKeys
	// used is, for each of its candidates, its share of the nodes considered so far if it is placed there.
	used []float64
}

// alwaysPlaced reports whether there are feasible nodes that the other pods to place cannot all fill. It tries the one node with the least
// demand, then the two with the least, and so on.
func (s *snapshot) alwaysPlaced(p *podInfo, feasible []*nodeInfo) bool {
	const rounding = 1e-6
	var others []*competitor
	demand := map[*nodeInfo]float64{}
	for _, other := range s.toPlace {
		if other == p || len(other.candidates) == 0 {
			continue
		}
		c := &competitor{other, separatingKeys(other, p), make([]float64, len(other.candidates))}
		others = append(others, c)
		for _, on := range feasible {
			if slices.Contains(c.candidates, on) {
				demand[on] += c.share(on, on, p)
			}
		}
	}
	slices.SortStableFunc(feasible, func(a, b *nodeInfo) int { return cmp.Compare(demand[a], demand[b]) })
	for k, next := range feasible {
		sum := 0.0
		for _, c := range others {
			for i, on := range c.candidates {
				c.used[i] += c.share(on, next, p)
			}
			sum += slices.Max(c.used)
		}
		if sum < float64(k+1)-rounding {
			return true
		}
	}
	return false
}

// share returns how much of what makes a node infeasible for p the competitor uses when it is placed on a node, 1 at most.
func (c *competitor) share(placedOn, of *nodeInfo, p *podInfo) float64 {
	share := 0.0
	switch {
	case inSameDomain(placedOn, of, c.keys):
		return 1
	case placedOn != of:
		return 0
	}
	for name, amount := range p.requests {
		if amount > 0 {
			// One unit more than what is free beyond the request makes the node infeasible.
			share = max(share, float64(c.requests[name])/float64(of.free[name]-amount+1))
		}
	}
	return min(1, share)
}

// term is one required term of pod affinity or anti-affinity.
type term struct {
	corev1.PodAffinityTerm
	// namespace is that of the pod that has the term.
	namespace string
	// selector is nil for a term that cannot be read, or uses fields that this package does not implement.
	selector labels.Selector
}

func terms(pod *corev1.Pod) (affinity, antiAffinity []term) {
	parse := func(from []corev1.PodAffinityTerm) (out []term) {
		for _, t := range from {
			selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
			if err != nil || len(t.MatchLabelKeys) > 0 || len(t.MismatchLabelKeys) > 0 {
				selector = nil
			}
			out = append(out, term{t, pod.Namespace, selector})
		}
		return out
	}
	all := ptr.Deref(pod.Spec.Affinity, corev1.Affinity{})
	return parse(ptr.Deref(all.PodAffinity, corev1.PodAffinity{}).RequiredDuringSchedulingIgnoredDuringExecution),
		parse(ptr.Deref(all.PodAntiAffinity, corev1.PodAntiAffinity{}).RequiredDuringSchedulingIgnoredDuringExecution)
}

// matches reports whether the term matches a pod, certainly or possibly: labels of namespaces are not read.
func (t term) matches(pod *corev1.Pod) (certainly, possibly bool) {
	if t.selector == nil {
		return false, true
	}
	named := slices.Contains(t.Namespaces, pod.Namespace)
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		named = t.namespace == pod.Namespace
	}
	matches := t.selector.Matches(labels.Set(pod.Labels))
	return matches && named, matches && (named || t.NamespaceSelector != nil)
}

// sameNode is a topology key for which every node is a domain, for host ports.
const sameNode = ""

// separatingKeys returns the topology keys in whose domains two pods cannot run together.
func separatingKeys(a, b *podInfo) []string {
	var keys []string
	for _, pair := range [][2]*podInfo{{a, b}, {b, a}} {
		for _, t := range pair[0].antiAffinity {
			if _, possibly := t.matches(pair[1].Pod); possibly {
				keys = append(keys, t.TopologyKey)
			}
		}
	}
	for _, port := range a.hostPorts {
		if slices.Contains(b.hostPorts, port) {
			keys = append(keys, sameNode)
		}
	}
	return keys
}

// inSameDomain reports whether two nodes are in one domain of any of the keys.
func inSameDomain(a, b *nodeInfo, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		if key == sameNode {
			return a == b
		}
		domain, labelled := a.node.Labels[key]
		other, too := b.node.Labels[key]
		return labelled && too && domain == other
	})
}

// affinityHolds reports whether pods that stay satisfy all affinity terms on the node. As in the scheduler, a pod counts only if all terms match it.
func (s *snapshot) affinityHolds(p *podInfo, on *nodeInfo) bool {
	for _, wanted := range p.affinity {
		if !slices.ContainsFunc(s.pods, func(other *podInfo) bool {
			return !other.moves && inSameDomain(other.on, on, []string{wanted.TopologyKey}) && !slices.ContainsFunc(p.affinity, func(t term) bool {
				certainly, _ := t.matches(other.Pod)
				return !certainly
			})
		}) {
			return false
		}
	}
	return true
}
