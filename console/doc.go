// Package console makes the web console and its downloads server behave on clusters with one control-plane node: one replica
// without anti-affinity, a rollout that can finish on that node without an outage, and no disruption budget over a single pod.
//
// It implements these requirements of docs/requirements.md: console and downloads run one replica and omit the affinity
// rules where high availability is off (R-CON-1), and two that are spread otherwise (R-CON-3); the configuration of
// downloads moves from a static manifest, which the cluster-version-operator writes, to an operator (R-CON-2).
//
// Two ways to use it. A console operator vendors the package and calls [ShapeDeployment] and [PodDisruptionBudget], which
// answer for every topology, and [Health]. On a cluster whose console operator does none of this, [Decide] says, step by step,
// what a controller has to write from outside: it takes downloads over from the cluster-version-operator in an order that may
// be cut off anywhere, and stands back where a console operator already shapes its Deployments.
//
// Both Deployments are pinned to control-plane nodes, so the control-plane topology decides; with an External control plane
// they run on workers, and the infrastructure topology does (U-CON-2, U-CON-5).
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package console
