// Package ingress makes the ingress router behave on clusters with one control-plane node: one replica where the topology
// says one, and the default IngressController pinned to the control plane, so that the router does not float to a worker that
// is added later while DNS still points at the first node.
//
// It implements these requirements of docs/requirements.md: the default IngressController targets the master pool exactly where
// the infrastructure topology is SingleReplica (R-ING-5), so that ingress does not float (R-ING-3), which changes nothing where
// there are no workers (R-ING-7); whoever wants ingress elsewhere moves it (R-ING-4); one router where high availability is off
// (R-ING-1), and two otherwise (R-ING-2), on the workers (R-ING-6).
//
// Two ways to use it. An ingress operator vendors the package and calls [DefaultIngressController], [EffectiveReplicas],
// [ShapeRouter] and [RouterPodDisruptionBudget]: pure functions over API objects. Beside a stock operator that does none of
// this, the controller in the controller package patches IngressController/default from outside, by [Decide].
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package ingress
