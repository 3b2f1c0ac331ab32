// SPDX-License-Identifier: Apache-2.0

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

	"github.com/solonode/sno/machineconfig/internal/nodestate"
)

// checkPlacement is described in the documentation of the package.
func (s *snapshot) checkPlacement() *Verdict {
	for _, p := range s.toPlace {
		for _, on := range s.nodes {
			if !on.draining && tolerates(&p.Spec, on.node, true) && selects(p.Pod, on.node, true) {
				p.candidates = append(p.candidates, on)
			}
		}
	}
	for _, p := range s.evicted {
		if slices.ContainsFunc(p.candidates, func(on *nodeInfo) bool { return nodestate.IsWindows(on.node) != nodestate.IsWindows(p.on.node) }) {
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

// feasible returns the nodes that are feasible for the pod now, and why the others are not.
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

// filter returns why the node is not feasible for the pod; empty if it is.
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

// tolerates reports whether a pod tolerates the taints of a node.
func tolerates(spec *corev1.PodSpec, node *corev1.Node, includeTemporary bool) bool {
	tolerations := slices.Clone(spec.Tolerations)
	if !includeTemporary {
		tolerations = slices.DeleteFunc(tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil })
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, includeTemporary)
	return !untolerated
}

// selects reports whether the pod's node selector and affinity select the node. It returns onError if they are invalid.
func selects(pod *corev1.Pod, node *corev1.Node, onError bool) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		return onError
	}
	return match
}

type competitor struct {
	*podInfo
	keys []string // of separatingKeys
	// used has, for each candidate, the share of the nodes considered so far that the pod uses if it is placed there.
	used []float64
}

// alwaysPlaced reports whether the other pods to place cannot fill all feasible nodes. It tries the k nodes with the
// least demand.
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

// share returns the share of what makes a node infeasible for p that the competitor uses if it is placed on a node.
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
			// One unit more than this makes the node infeasible.
			share = max(share, float64(c.requests[name])/float64(of.free[name]-amount+1))
		}
	}
	return min(1, share)
}

// term is a required term of pod affinity or anti-affinity.
type term struct {
	corev1.PodAffinityTerm
	namespace string          // of the pod that has the term
	selector  labels.Selector // nil for a term that is invalid or not supported
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

// matches reports whether the term matches a pod. Labels of namespaces are unknown.
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

// sameNode is a topology key of which every node is a domain, for host ports.
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

// affinityHolds reports whether pods that stay satisfy all affinity terms. As in the scheduler, all terms must match a
// pod.
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
