// SPDX-License-Identifier: Apache-2.0

package decision

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

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
)

type strength struct{ replicas, minReady int } // minReady is how many guards the budget keeps ready

// wantedStrength is postponed if it would relax the guard while fewer members are known to be healthy than the topology
// expects.
func (in Inputs) wantedStrength() (want strength, postponed bool) {
	host := in.host()
	if budget, err := etcdguard.PodsDisruptionBudget(host); err == nil && budget != nil { // nil where no guard is needed
		want.replicas, _ = etcdguard.Size(host)
		want.minReady = budget.Spec.MinAvailable.IntValue()
	}
	live, ok := in.liveStrength()
	if !ok || want.minReady >= live.minReady {
		return want, false
	}
	_, healthy := etcdguard.Votes(in.Members)
	return want, healthy < etcdguard.ExpectedMembers(in.mode())
}

// host counts nodes without a member yet and members without a node.
func (in Inputs) host() etcdguard.Host {
	voters, _ := etcdguard.Votes(in.Members)
	image := in.Image
	if image == "" && in.Deployment != nil {
		image = imageOf(in.Deployment)
	}
	host, _ := etcdguard.NewHost(*in.Cluster, max(len(etcdguard.MemberNodes(in.mode(), in.Nodes)), voters, 1), image) // the checks have validated the Cluster
	return host
}

func (in Inputs) liveStrength() (strength, bool) {
	if in.Deployment == nil || in.Budget == nil {
		return strength{}, false
	}
	replicas := replicasOf(in.Deployment)
	return strength{replicas, minReadyOf(in.Budget, replicas)}, true
}

func replicasOf(d *appsv1.Deployment) int { return int(ptr.Deref(d.Spec.Replicas, 1)) }

// minReadyOf returns how many of the replicas the budget keeps, by the rules of the disruption controller.
func minReadyOf(budget *policyv1.PodDisruptionBudget, replicas int) int {
	minAvailable, maxUnavailable := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	n, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(minAvailable, maxUnavailable), replicas, true)
	switch {
	case err != nil:
		return 0
	case minAvailable != nil:
		return n
	}
	return max(replicas-n, 0)
}

// faults lists what is wrong with the live guard, as predicates of "the guard".
func (in Inputs) faults(want strength) []string {
	var faults []string
	fault := func(condition bool, what string) {
		if condition {
			faults = append(faults, what)
		}
	}
	d, b := in.Deployment, in.Budget
	fault(d == nil, "has no Deployment")
	if d != nil {
		pod := d.Spec.Template.Spec
		_, pinned := pod.NodeSelector[etcdguard.MasterRole]
		probes := func(c corev1.Container) bool { return c.ReadinessProbe != nil }
		fault(terminating(d), "has a Deployment that is being deleted")
		fault(replicasOf(d) != want.replicas, "has the wrong number of replicas")
		fault(pinned && in.mode() == configv1.HighlyAvailableArbiterMode, "does not run on the arbiter")
		fault(!slices.ContainsFunc(pod.Containers, probes), "has no readiness probe")
	}
	fault(b == nil, "has no PodDisruptionBudget")
	if b != nil {
		fault(terminating(b), "has a PodDisruptionBudget that is being deleted")
		fault(minReadyOf(b, want.replicas) != want.minReady, "has a PodDisruptionBudget that allows the wrong number of evictions")
		fault(ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow,
			"has a PodDisruptionBudget that always allows to evict guards that are not ready")
		fault(d != nil && !selects(b, d), "has a PodDisruptionBudget whose selector does not select its pods")
	}
	return faults
}

// selects reports whether the budget selects the guards only. An empty selector also selects the pods of etcd.
func selects(b *policyv1.PodDisruptionBudget, d *appsv1.Deployment) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(d.Spec.Template.Labels))
}

func terminating(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

func imageOf(d *appsv1.Deployment) string {
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name == etcdguard.ContainerName {
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

func (in Inputs) claim() (overrides.Claim, error) {
	return overrides.Read(in.ClusterVersion, FieldOwner, Overrides()...)
}

// operatorHasGuards reports whether the etcd operator is one that has its own guards.
func (in Inputs) operatorHasGuards() bool {
	return in.PodsBudget != nil || in.reports("GuardControllerDegraded")
}

func (in Inputs) operatorGuardsReady() bool {
	if in.PodsBudget == nil || terminating(in.PodsBudget) {
		return false
	}
	status := in.PodsBudget.Status
	return status.ObservedGeneration >= in.PodsBudget.Generation && status.DesiredHealthy > 0 && status.CurrentHealthy >= status.DesiredHealthy
}

// operatorGuardsUnready reports whether guards of the operator are known to be missing or not ready.
func (in Inputs) operatorGuardsUnready() bool {
	if in.PodsBudget == nil {
		return false
	}
	status := in.PodsBudget.Status
	observed := status.ObservedGeneration > 0 && status.ObservedGeneration >= in.PodsBudget.Generation
	return observed && (status.ExpectedPods == 0 || status.CurrentHealthy < status.ExpectedPods)
}

// versionOperatorMayWrite reports whether the cluster-version-operator may write the guard (U-ETC-5).
func (in Inputs) versionOperatorMayWrite() bool {
	return in.ClusterVersion != nil && !in.operatorHasGuards() && !in.reports("QuorumGuardControllerDegraded") && len(in.stockOwners()) == 0
}

func (in Inputs) versionOperatorWrites() bool {
	return (in.Deployment != nil && ownership.ManagedBy(in.Deployment, overrides.ClusterVersionOperator)) ||
		(in.Budget != nil && ownership.ManagedBy(in.Budget, overrides.ClusterVersionOperator))
}

func (in Inputs) reports(condition string) bool {
	return in.Etcd != nil && slices.ContainsFunc(in.Etcd.Status.Conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == condition })
}

// stockOwners returns the etcd operators among the owners. Check Readable reports unreadable ones.
func (in Inputs) stockOwners() []string {
	var stock []string
	numbers, _ := in.sizeFields(strength{})
	for _, number := range numbers {
		stock = append(stock, number.owners...)
	}
	return slices.DeleteFunc(stock, func(m string) bool { return !slices.Contains(stockManagers, m) })
}

type sizeField struct {
	field   string
	matches bool
	owners  []string
}

// sizeFields returns the fields that are set, and whether they match the wanted strength.
func (in Inputs) sizeFields(want strength) (all []sizeField, err error) {
	add := func(set bool, object metav1.Object, field string, fits bool) {
		if set {
			owners, failed := ownership.Others(object, field, FieldOwner)
			all, err = append(all, sizeField{field, fits, owners}), errors.Join(err, failed)
		}
	}
	if d := in.Deployment; d != nil {
		add(d.Spec.Replicas != nil, d, fieldReplicas, replicasOf(d) == want.replicas)
	}
	if b := in.Budget; b != nil {
		fits := minReadyOf(b, want.replicas) == want.minReady
		add(b.Spec.MaxUnavailable != nil, b, fieldMaxUnavailable, fits)
		add(b.Spec.MinAvailable != nil, b, fieldMinAvailable, fits)
	}
	return all, err
}
