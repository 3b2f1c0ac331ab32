// Package ingress makes the ingress router behave on clusters with one control-plane node: one replica where the topology
// says one, and the default IngressController pinned to the control plane, so that the router does not float to a worker that
// is added later while DNS still points at the first node.
//
// It implements, from seed 003 (single-node-openshift-day2-workers): the default IngressController targets the master pool
// whenever the infrastructure topology is SingleReplica; users who want their ingress elsewhere can still move it. From seed
// 004 (single-node production deployment): the router has one replica when high availability is off.
//
// Two ways to use it. An ingress operator vendors the package and calls [DefaultIngressController], [EffectiveReplicas],
// [ShapeRouter] and [RouterPodDisruptionBudget]: pure functions over API objects. Beside a stock operator that does none of
// this, the controller in the controller package patches IngressController/default from outside, by [Decide].
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package ingress
