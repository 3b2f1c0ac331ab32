package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// checkRoom is the argument of the package's documentation, for every evicted pod.
func (s *survey) checkRoom() *Verdict {
	for _, c := range s.comers {
		for _, at := range s.sites {
			if mayLand(c, at) {
				c.lands[at] = true
			}
		}
	}
	for _, c := range s.comers {
		if !c.evicted {
			continue
		}
		if s.strays(c) {
			v := doubt(OtherSystem, "pod %s/%s has no node selector and no taint that keep it from nodes of another operating system", c.pod.Namespace, c.pod.Name)
			return &v
		}
		open, refusals := s.open(c)
		if len(open) == 0 {
			v := doubt(NoNode, "pod %s/%s: %s", c.pod.Namespace, c.pod.Name, refusals)
			return &v
		}
		if !s.outlasts(c, open) {
			v := doubt(NoRoom, "pod %s/%s: %d nodes would take it, but others may fill them first", c.pod.Namespace, c.pod.Name, len(open))
			return &v
		}
	}
	return nil
}

// strays tells whether the scheduler may send a comer to a node of another operating system.
func (s *survey) strays(c *comer) bool {
	return slices.ContainsFunc(s.sites, func(at *site) bool { return c.lands[at] && isWindows(at.node) != isWindows(c.at.node) })
}

// isWindows goes by the label, which every kubelet sets.
func isWindows(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == string(corev1.Windows)
}

// open are the nodes that take a comer as things are, and in words why the others do not.
func (s *survey) open(c *comer) ([]*site, string) {
	var open []*site
	refusals, repellers := map[string]int{}, s.repellers(c)
	for _, at := range s.sites {
		if why := s.refuses(at, c, repellers); why != "" {
			refusals[why]++
			continue
		}
		open = append(open, at)
	}
	var words []string
	for why, nodes := range refusals {
		words = append(words, fmt.Sprintf("%d %s", nodes, why))
	}
	slices.Sort(words)
	return open, strings.Join(words, ", ")
}

func (s *survey) refuses(at *site, c *comer, repellers []repeller) string {
	switch {
	case at.leaving:
		return "being drained"
	case !at.well:
		return "not well"
	case !tolerates(&c.pod.Spec, at.node, false):
		return "tainted"
	case !selected(c.pod, at.node, false):
		return "not selected"
	case !declares(at.node, c.at.node):
		return "lacking features of its node"
	case clash(at.ports, c.ports):
		return "with its host ports taken"
	case !at.free.holds(c.needs):
		return "too full"
	case slices.ContainsFunc(repellers, func(r repeller) bool { return together(r.at.node, at.node, r.keys) }):
		return "kept free of it by anti-affinity"
	case !s.attracted(c, at):
		return "without the pods it must be near"
	}
	return ""
}

// mayLand tells where a comer might end up, in doubt everywhere. How full a node is does not count: it may have become free.
func mayLand(c *comer, at *site) bool {
	return !at.leaving && tolerates(&c.pod.Spec, at.node, true) && selected(c.pod, at.node, true)
}

// tolerates tells whether a pod tolerates the taints of a node, and for as long as it runs unless the answer may be generous.
func tolerates(spec *corev1.PodSpec, node *corev1.Node, generous bool) bool {
	tolerations := slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool { return t.TolerationSeconds != nil && !generous })
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, generous)
	return !untolerated
}

func selected(pod *corev1.Pod, node *corev1.Node, inDoubt bool) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		return inDoubt
	}
	return match
}

// declares tells whether a node has all features that another one declares: a pod may need any of them.
func declares(node, all *corev1.Node) bool {
	return !slices.ContainsFunc(all.Status.DeclaredFeatures, func(feature string) bool { return !slices.Contains(node.Status.DeclaredFeatures, feature) })
}

// tolerance keeps rounding from turning a no into a yes.
const tolerance = 1e-6

// outlasts tells whether there are nodes among the open ones that the other comers cannot all close. The nodes that suffer least
// from them are tried first: one, two, and so on.
func (s *survey) outlasts(c *comer, open []*site) bool {
	var others []*threat
	for _, other := range s.comers {
		if other != c {
			others = append(others, &threat{
				comer: other, to: c, keys: repel(other.resident, c.resident), never: clash(other.ports, c.ports), used: map[*site]float64{},
			})
		}
	}
	suffers := map[*site]float64{}
	for _, at := range open {
		for _, other := range others {
			if other.lands[at] {
				suffers[at] += other.share(at)
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *site) int { return cmp.Compare(suffers[a], suffers[b]) })
	for k, at := range open {
		used := 0.0
		for _, other := range others {
			used += other.most(at)
		}
		if used < float64(k+1)-tolerance {
			return true
		}
	}
	return false
}

// threat is what another comer can do to one.
type threat struct {
	*comer
	to *comer
	// keys are those of the domains that the two cannot share, never tells that they cannot share a node.
	keys  []string
	never bool
	// used is how much of the nodes looked at so far it uses up by landing on a node, and the most of that.
	used  map[*site]float64
	worst float64
}

// share is how much of what closes a node it uses up by landing there, at most all of it.
func (t *threat) share(at *site) float64 {
	if t.never || together(at.node, at.node, t.keys) {
		return 1
	}
	share := 0.0
	for name, amount := range t.to.needs {
		if amount > 0 {
			// One unit more than what is spare beyond the request closes the node.
			share = max(share, float64(t.needs[name])/float64(at.free[name]-amount+1))
		}
	}
	return min(1, share)
}

// most adds a node to those looked at, and gives the most that landing anywhere uses up of them all.
func (t *threat) most(next *site) float64 {
	if t.lands[next] {
		t.used[next] += t.share(next)
		t.worst = max(t.worst, t.used[next])
	}
	if len(t.keys) == 0 {
		return t.worst
	}
	for landing := range t.lands {
		if landing != next && together(landing.node, next.node, t.keys) {
			t.used[landing]++
			t.worst = max(t.worst, t.used[landing])
		}
	}
	return t.worst
}
