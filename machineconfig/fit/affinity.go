package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// terms are what a pod requires of its neighbours.
type terms struct {
	with, without []term
}

// term is one required term of pod affinity or anti-affinity.
type term struct {
	key        string
	selector   labels.Selector
	namespaces []string
	// anywhere tells that the term chooses namespaces by their labels, which are not known here.
	anywhere bool
	// vague tells that the term cannot be read, or says more than is followed here.
	vague bool
}

func termsOf(pod *corev1.Pod) terms {
	var out terms
	if pod.Spec.Affinity == nil {
		return out
	}
	if affinity := pod.Spec.Affinity.PodAffinity; affinity != nil {
		out.with = parse(pod.Namespace, affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity := pod.Spec.Affinity.PodAntiAffinity; affinity != nil {
		out.without = parse(pod.Namespace, affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

func parse(namespace string, from []corev1.PodAffinityTerm) []term {
	out := make([]term, 0, len(from))
	for _, t := range from {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		parsed := term{
			key: t.TopologyKey, selector: selector, namespaces: t.Namespaces, anywhere: t.NamespaceSelector != nil,
			vague: err != nil || len(t.MatchLabelKeys) > 0 || len(t.MismatchLabelKeys) > 0,
		}
		if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
			parsed.namespaces = []string{namespace}
		}
		out = append(out, parsed)
	}
	return out
}

// certainly tells whether the term means this pod.
func (t term) certainly(pod *corev1.Pod) bool {
	return !t.vague && slices.Contains(t.namespaces, pod.Namespace) && t.selector.Matches(labels.Set(pod.Labels))
}

// maybe tells whether it might.
func (t term) maybe(pod *corev1.Pod) bool {
	return t.vague || ((t.anywhere || slices.Contains(t.namespaces, pod.Namespace)) && t.selector.Matches(labels.Set(pod.Labels)))
}

// repel lists the topology keys in whose domains the two may not be together, whichever of them says so.
func repel(a, b *resident) []string {
	var keys []string
	for _, t := range a.terms.without {
		if t.maybe(b.pod) {
			keys = append(keys, t.key)
		}
	}
	for _, t := range b.terms.without {
		if t.maybe(a.pod) {
			keys = append(keys, t.key)
		}
	}
	return keys
}

// together tells whether two nodes are in one domain of any of the keys.
func together(a, b *corev1.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		of, labelled := a.Labels[key]
		other, too := b.Labels[key]
		return labelled && too && of == other
	})
}

// attracted tells whether everything that a pod requires to have near is near the node and stays there. As in the scheduler, a
// neighbour counts only if all terms mean it.
func (s *survey) attracted(c *comer, to *site) bool {
	for _, wanted := range c.terms.with {
		near := slices.ContainsFunc(s.settled, func(r *resident) bool {
			if r.moves || !together(r.at.node, to.node, []string{wanted.key}) {
				return false
			}
			return !slices.ContainsFunc(c.terms.with, func(t term) bool { return !t.certainly(r.pod) })
		})
		if !near {
			return false
		}
	}
	return true
}

// repeller is a pod that has a node and keeps a comer out of the domains around it.
type repeller struct {
	at   *site
	keys []string
}

// repellers are all of them. Evicted pods count too, until they have ended.
func (s *survey) repellers(c *comer) []repeller {
	var out []repeller
	for _, r := range s.settled {
		if r == c.resident {
			continue
		}
		if keys := repel(c.resident, r); len(keys) > 0 {
			out = append(out, repeller{r.at, keys})
		}
	}
	return out
}
