package etcdguard

import (
	"cmp"
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
)

// strength is the number of guards, and how many of them must stay ready: an eviction that would leave fewer is refused.
type strength struct{ replicas, floor int }

// wantedStrength returns the strength that the cluster needs. held reports that the guard must not be changed yet: it would be relaxed while
// fewer members are known to be healthy than the topology expects.
func (in Inputs) wantedStrength() (want strength, held bool) {
	host := in.host()
	want = strength{host.size(), host.size() - host.budget()}
	live, ok := in.liveStrength()
	if !ok || want.floor >= live.floor {
		return want, false
	}
	_, healthy := votes(in.Members)
	return want, healthy < expectedMembers(in.mode())
}

// host counts nodes that have no member yet, and members whose nodes are gone.
func (in Inputs) host() Host {
	voters, _ := votes(in.Members)
	image := in.Image
	if image == "" && in.Deployment != nil {
		image = imageOf(in.Deployment)
	}
	return Host{mode: in.mode(), members: max(len(memberNodes(in.mode(), in.Nodes)), voters), image: image}
}

func (in Inputs) liveStrength() (strength, bool) {
	if in.Deployment == nil || in.Budget == nil {
		return strength{}, false
	}
	replicas := replicasOf(in.Deployment)
	return strength{replicas, floorOf(in.Budget, replicas)}, true
}

func replicasOf(d *appsv1.Deployment) int { return int(ptr.Deref(d.Spec.Replicas, 1)) }

// floorOf returns how many of the replicas the budget keeps, by the rules of the disruption controller.
func floorOf(budget *policyv1.PodDisruptionBudget, replicas int) int {
	least, most := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	n, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(least, most), replicas, true)
	switch {
	case err != nil:
		return 0
	case least != nil:
		return n
	}
	return max(replicas-n, 0)
}

// faults lists what is wrong with the live guard, each as a predicate of "the guard".
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
		fault(terminating(d), "has a Deployment that is being deleted")
		fault(replicasOf(d) != want.replicas, "has the wrong number of replicas")
		fault(pinned && in.mode() == configv1.HighlyAvailableArbiterMode, "does not run on the arbiter")
		fault(!slices.ContainsFunc(pod.Containers, probes), "has no readiness probe")
	}
	fault(b == nil, "has no PodDisruptionBudget")
	if b != nil {
		fault(terminating(b), "has a PodDisruptionBudget that is being deleted")
		fault(floorOf(b, want.replicas) != want.floor, "has a PodDisruptionBudget that allows the wrong number of evictions")
		fault(ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow,
			"has a PodDisruptionBudget that always allows to evict guards that are not ready")
		fault(d != nil && !selects(b, d), "has a PodDisruptionBudget whose selector does not select its pods")
	}
	return faults
}

// selects reports whether the budget is about the guards. An empty selector selects every pod in the namespace, also those of etcd.
func selects(b *policyv1.PodDisruptionBudget, d *appsv1.Deployment) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(d.Spec.Template.Labels))
}

func terminating(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

func imageOf(d *appsv1.Deployment) string {
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image
		}
	}
	return ""
}

func (in Inputs) ownsDeployment() bool {
	return in.Deployment != nil && !terminating(in.Deployment) && ownership.Owns(in.Deployment, FieldOwner)
}

func (in Inputs) ownsBudget() bool {
	return in.Budget != nil && !terminating(in.Budget) && ownership.Owns(in.Budget, FieldOwner)
}

// claim returns the state of the entries in spec.overrides for the guard and its budget: both have a static manifest.
func (in Inputs) claim() (overrides.Claim, error) {
	return overrides.Read(in.ClusterVersion, FieldOwner, overrides.Deployment(Namespace, GuardName),
		configv1.ComponentOverride{Kind: "PodDisruptionBudget", Group: "policy", Namespace: Namespace, Name: GuardName, Unmanaged: true})
}

// operatorGuards reports whether one of today's etcd operators runs, which has its own guards in every topology that needs them.
func (in Inputs) operatorGuards() bool {
	return in.PodsBudget != nil || in.reports("GuardControllerDegraded")
}

// operatorGuardsReady reports whether enough of the operator's guards are known to be ready.
func (in Inputs) operatorGuardsReady() bool {
	if in.PodsBudget == nil || terminating(in.PodsBudget) {
		return false
	}
	status := in.PodsBudget.Status
	return status.ObservedGeneration >= in.PodsBudget.Generation && status.DesiredHealthy > 0 && status.CurrentHealthy >= status.DesiredHealthy
}

// operatorGuardsUnready reports whether some are known not to be.
func (in Inputs) operatorGuardsUnready() bool {
	if in.PodsBudget == nil {
		return false
	}
	status := in.PodsBudget.Status
	observed := status.ObservedGeneration > 0 && status.ObservedGeneration >= in.PodsBudget.Generation
	return observed && (status.ExpectedPods == 0 || status.CurrentHealthy < status.ExpectedPods)
}

// mayBeStatic reports whether the cluster-version-operator may write the guard. It does not on releases whose etcd operator does (U-ETC-5).
func (in Inputs) mayBeStatic() bool {
	return in.ClusterVersion != nil && !in.operatorGuards() && !in.reports("QuorumGuardControllerDegraded") && len(in.stockOwners()) == 0
}

// fromRelease reports whether the cluster-version-operator is known to write the guard.
func (in Inputs) fromRelease() bool {
	return (in.Deployment != nil && ownership.ManagedBy(in.Deployment, overrides.ClusterVersionOperator)) ||
		(in.Budget != nil && ownership.ManagedBy(in.Budget, overrides.ClusterVersionOperator))
}

func (in Inputs) reports(condition string) bool {
	return in.Etcd != nil && slices.ContainsFunc(in.Etcd.Status.Conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == condition })
}

// stockOwners lists the etcd operators among the owners. Check Readable has already failed where the owners cannot be read.
func (in Inputs) stockOwners() []string {
	var stock []string
	numbers, _ := in.numbers(strength{})
	for _, number := range numbers {
		stock = append(stock, number.owners...)
	}
	return slices.DeleteFunc(stock, func(m string) bool { return !slices.Contains(stockManagers, m) })
}

// number is a field that decides about the strength of the guard.
type number struct {
	field  string
	fits   bool
	owners []string
}

// numbers lists the fields that are set, compared with the wanted strength, with their owners except this module.
func (in Inputs) numbers(want strength) (all []number, err error) {
	add := func(set bool, object metav1.Object, field string, fits bool) {
		if set {
			owners, failed := ownership.Others(object, field, FieldOwner)
			all, err = append(all, number{field, fits, owners}), errors.Join(err, failed)
		}
	}
	if d := in.Deployment; d != nil {
		add(d.Spec.Replicas != nil, d, fieldReplicas, replicasOf(d) == want.replicas)
	}
	if b := in.Budget; b != nil {
		fits := floorOf(b, want.replicas) == want.floor
		add(b.Spec.MaxUnavailable != nil, b, fieldMaxUnavailable, fits)
		add(b.Spec.MinAvailable != nil, b, fieldMinAvailable, fits)
	}
	return all, err
}
