// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/solonode/sno/fleet"
)

var (
	// ErrTolerations is returned for a Placement that drops clusters that are away. Their controllers would be released,
	// removed and installed again when they are back.
	ErrTolerations = errors.New("the Placement drops clusters that are away")
	// ErrSelectsAll is returned for a Placement that does not limit itself to single nodes.
	ErrSelectsAll = errors.New("the Placement selects clusters of every topology")
	// ErrOptOut is returned for a Placement that ignores the opt-out of clusters.
	ErrOptOut = errors.New("the Placement ignores opt-outs")
)

// Names of the Placements that [Placements] returns.
const (
	SingleNodes            = "sno-single-nodes"
	SingleNodesWithWorkers = "sno-single-nodes-with-workers"
	Canaries               = "sno-canaries"
)

// tolerated are the taints of a cluster that is away.
var tolerated = []string{clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable}

// Placements returns the Placements of a fleet: all single nodes, those of them with workers, and canaries. They
// tolerate clusters that are away, and leave out those that opt out. The cluster set must be bound in the namespace.
func Placements(namespace, clusterSet string) []*clusterv1beta1.Placement {
	canary := metav1.LabelSelectorRequirement{Key: fleet.CanaryLabel, Operator: metav1.LabelSelectorOpExists}
	workers := metav1.LabelSelectorRequirement{Key: fleet.ClaimWorkers, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"0"}}
	known := metav1.LabelSelectorRequirement{Key: fleet.ClaimWorkers, Operator: metav1.LabelSelectorOpExists}
	return []*clusterv1beta1.Placement{
		placement(namespace, SingleNodes, clusterSet, nil, nil),
		placement(namespace, SingleNodesWithWorkers, clusterSet, nil, []metav1.LabelSelectorRequirement{known, workers}),
		placement(namespace, Canaries, clusterSet, []metav1.LabelSelectorRequirement{canary}, nil),
	}
}

func placement(namespace, name, clusterSet string, labels, claims []metav1.LabelSelectorRequirement) *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	optOut := metav1.LabelSelectorRequirement{Key: fleet.OptOutLabel, Operator: metav1.LabelSelectorOpDoesNotExist}
	single := metav1.LabelSelectorRequirement{
		Key: fleet.ClaimControlPlane, Operator: metav1.LabelSelectorOpIn, Values: []string{string(configv1.SingleReplicaTopologyMode)},
	}
	p.Spec.ClusterSets = []string{clusterSet}
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchExpressions: append([]metav1.LabelSelectorRequirement{optOut}, labels...)},
		ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: append([]metav1.LabelSelectorRequirement{single}, claims...)},
	}}}
	for _, taint := range tolerated {
		p.Spec.Tolerations = append(p.Spec.Tolerations, clusterv1beta1.Toleration{Key: taint, Operator: clusterv1beta1.TolerationOpExists})
	}
	return p
}

// CheckPlacement returns why the Placement must not select clusters for the add-on: ErrTolerations, ErrSelectsAll,
// ErrOptOut, joined, or nil.
func CheckPlacement(p *clusterv1beta1.Placement) error {
	var faults []error
	fault := func(err error, format string, args ...any) {
		faults = append(faults, fmt.Errorf("placement %s/%s: %w: %s", p.Namespace, p.Name, err, fmt.Sprintf(format, args...)))
	}
	for _, taint := range tolerated {
		if !slices.ContainsFunc(p.Spec.Tolerations, func(t clusterv1beta1.Toleration) bool { return tolerates(t, taint) }) {
			fault(ErrTolerations, "add a toleration of %s with operator Exists and without tolerationSeconds to spec.tolerations", taint)
		}
	}
	// Predicates are alternatives; each must limit itself.
	if len(p.Spec.Predicates) == 0 {
		fault(ErrSelectsAll, "add a claimSelector for %s to spec.predicates", fleet.ClaimControlPlane)
	}
	for i, predicate := range p.Spec.Predicates {
		selector := predicate.RequiredClusterSelector
		claims, labels := selector.ClaimSelector.MatchExpressions, selector.LabelSelector
		if !slices.ContainsFunc(claims, singleNodes) {
			fault(ErrSelectsAll, "spec.predicates[%d] lacks a claimSelector for %s in SingleReplica", i, fleet.ClaimControlPlane)
		}
		if !slices.ContainsFunc(labels.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Key == fleet.OptOutLabel && r.Operator == metav1.LabelSelectorOpDoesNotExist
		}) {
			fault(ErrOptOut, "spec.predicates[%d] lacks a labelSelector with %s DoesNotExist", i, fleet.OptOutLabel)
		}
	}
	return errors.Join(faults...)
}

func tolerates(t clusterv1beta1.Toleration, taint string) bool {
	return (t.Key == taint || t.Key == "") && (t.Operator == clusterv1beta1.TolerationOpExists) &&
		(t.Effect == "" || t.Effect == clusterv1.TaintEffectNoSelect) && t.TolerationSeconds == nil
}

func singleNodes(r metav1.LabelSelectorRequirement) bool {
	return r.Key == fleet.ClaimControlPlane && r.Operator == metav1.LabelSelectorOpIn &&
		slices.Equal(r.Values, []string{string(configv1.SingleReplicaTopologyMode)})
}
