package etcdguard

import (
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/patch/ownership"
)

// strength is a guard in numbers.
type strength struct {
	// replicas is how many guards there are to be.
	replicas int
	// floor is how many of them must stay ready: an eviction that would leave fewer is refused. The greater, the stricter.
	floor int
}

// strengthOf is what the topology and the cluster ask for, and held that it must wait: it would loosen the guard while etcd is
// not known to have as many healthy members as the topology expects. The number is counted anew on every call, and only members
// and nodes count, never what is there already.
func (in Inputs) strengthOf() (want strength, held bool) {
	host := in.host()
	size := host.size()
	want = strength{size, size - host.budget()}
	live, ok := in.live()
	if !ok || want.floor >= live.floor {
		return want, false
	}
	_, healthy := votes(in.Members)
	return want, healthy < expectedMembers(in.mode())
}

// host is what host.go needs to know. A node without a member yet counts, and so does a member whose node is gone; before either is there
// the topology says how many there are to be.
func (in Inputs) host() Host {
	voters, _ := votes(in.Members)
	image := in.Image
	if image == "" && in.Deployment != nil {
		image = imageOf(in.Deployment)
	}
	return Host{mode: in.mode(), members: max(len(memberNodes(in.mode(), in.Nodes)), voters), image: image}
}

// live is the strength of the guard that is there; false unless both parts of it are.
func (in Inputs) live() (strength, bool) {
	if in.Deployment == nil || in.Budget == nil {
		return strength{}, false
	}
	replicas := replicasOf(in.Deployment)
	return strength{replicas, floorOf(in.Budget, replicas)}, true
}

func replicasOf(d *appsv1.Deployment) int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

// floorOf is how many of the replicas the budget keeps, by the rules of the disruption controller: percentages are rounded up. A
// budget that says nothing, or nothing that can be read, keeps none.
func floorOf(budget *policyv1.PodDisruptionBudget, replicas int) int {
	if least := budget.Spec.MinAvailable; least != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(least, replicas, true)
		if err != nil {
			return 0
		}
		return n
	}
	if most := budget.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, replicas, true)
		if err != nil {
			return 0
		}
		return max(replicas-n, 0)
	}
	return 0
}

// fits tells whether the guard that is there does what is wanted, whoever wrote it.
func (in Inputs) fits(want strength) bool { return len(in.faults(want)) == 0 }

// faults are what keeps the guard that is there from doing what is wanted, in stable words, each the predicate of "the guard".
func (in Inputs) faults(want strength) []string {
	var faults []string
	fault := func(is bool, what string) {
		if is {
			faults = append(faults, what)
		}
	}
	d, b := in.Deployment, in.Budget
	fault(d == nil, "has no Deployment")
	if d != nil {
		pod := d.Spec.Template.Spec
		_, pinned := pod.NodeSelector[MasterRole]
		probes := func(c corev1.Container) bool { return c.ReadinessProbe != nil }
		fault(leaving(d), "has a Deployment that is being deleted")
		fault(replicasOf(d) != want.replicas, "has another number of replicas than the cluster needs")
		fault(pinned && in.mode() == configv1.HighlyAvailableArbiterMode, "does not run on the arbiter, whose member counts too")
		fault(!slices.ContainsFunc(pod.Containers, probes), "does not ask etcd for its health, for want of a readiness probe")
	}
	fault(b == nil, "has no PodDisruptionBudget")
	if b != nil {
		policy := b.Spec.UnhealthyPodEvictionPolicy
		fault(leaving(b), "has a PodDisruptionBudget that is being deleted")
		fault(floorOf(b, want.replicas) != want.floor, "has a PodDisruptionBudget that lets another number of guards go than etcd can spare")
		fault(policy != nil && *policy == policyv1.AlwaysAllow, "has a PodDisruptionBudget that lets a node go whose etcd is down for a moment")
		fault(d != nil && !selects(b, d), "has a PodDisruptionBudget whose selector does not select its pods")
	}
	return faults
}

// selects tells whether the budget is about the guards. An empty selector is about every pod in the namespace, those of etcd included.
func selects(b *policyv1.PodDisruptionBudget, d *appsv1.Deployment) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(d.Spec.Template.Labels))
}

func leaving(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

func imageOf(d *appsv1.Deployment) string {
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image
		}
	}
	return ""
}

// releaseAnnotations are those by which the cluster-version-operator chooses manifests. On an object that it leaves alone they
// only mislead; it writes them again when it comes back.
func releaseAnnotations(object metav1.Object) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(object.GetAnnotations())), func(key string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain != "release.openshift.io" && !strings.HasSuffix(domain, ".release.openshift.io")
	})
}

func (in Inputs) oursDeployment() bool {
	return in.Deployment != nil && !leaving(in.Deployment) && holdsOurs(in.Deployment)
}
func (in Inputs) oursBudget() bool {
	return in.Budget != nil && !leaving(in.Budget) && holdsOurs(in.Budget)
}

// operatorGuards tells whether an etcd operator of today is at work, which guards by itself in every topology that needs it: its
// budget is there, or its controller reports.
func (in Inputs) operatorGuards() bool {
	return in.PodsBudget != nil || in.reports("GuardControllerDegraded")
}

// operatorStands tells whether its guards are there and ready.
func (in Inputs) operatorStands() bool {
	if in.PodsBudget == nil || leaving(in.PodsBudget) {
		return false
	}
	status := in.PodsBudget.Status
	return status.ObservedGeneration >= in.PodsBudget.Generation && status.DesiredHealthy > 0 && status.CurrentHealthy >= status.DesiredHealthy
}

// operatorLacks tells whether some of its guards are known not to be ready.
func (in Inputs) operatorLacks() bool {
	if in.PodsBudget == nil {
		return false
	}
	status := in.PodsBudget.Status
	seen := status.ObservedGeneration > 0 && status.ObservedGeneration >= in.PodsBudget.Generation
	return seen && (status.ExpectedPods == 0 || status.CurrentHealthy < status.ExpectedPods)
}

// mayBeStatic tells whether the cluster-version-operator writes the guard, for all that is known: it does not on releases whose
// operator does (U-ETC-5).
func (in Inputs) mayBeStatic() bool {
	return in.ClusterVersion != nil && !in.operatorGuards() && !in.reports("QuorumGuardControllerDegraded") && len(in.stockOwners()) == 0
}

func (in Inputs) reports(condition string) bool {
	if in.Etcd == nil {
		return false
	}
	for _, c := range in.Etcd.Status.Conditions {
		if c.Type == condition {
			return true
		}
	}
	return false
}

// stockOwners are the etcd operator's managers of the guard. What cannot be read has none; a check says so.
func (in Inputs) stockOwners() []string {
	owners, err := in.owners(nil)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(owners, func(m string) bool { return !isStock(m) })
}

// owners lists who owns the numbers of the guard, sorted, except this module. where says which of the two objects count; nil
// for both.
func (in Inputs) owners(where func(field string) bool) ([]string, error) {
	var owners []string
	for _, of := range in.fields() {
		if !of.there || (where != nil && !where(of.name)) {
			continue
		}
		others, err := ownership.Others(of.object, of.name, FieldOwner)
		if err != nil {
			return nil, err
		}
		owners = append(owners, others...)
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}

type field struct {
	object metav1.Object
	name   string
	there  bool
}

func (in Inputs) fields() []field {
	var all []field
	if in.Deployment != nil {
		all = append(all, field{in.Deployment, FieldReplicas, in.Deployment.Spec.Replicas != nil})
	}
	if in.Budget != nil {
		all = append(all,
			field{in.Budget, FieldMaxUnavailable, in.Budget.Spec.MaxUnavailable != nil},
			field{in.Budget, FieldMinAvailable, in.Budget.Spec.MinAvailable != nil})
	}
	return all
}
