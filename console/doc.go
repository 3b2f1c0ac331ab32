// Package console makes the web console and its downloads server work on clusters with one control-plane node: one replica
// without anti-affinity, rollouts that finish on that node without an outage, and no disruption budget over a single pod.
//
// A console operator vendors the package and calls [ShapeDeployment] and [PodDisruptionBudget]. Beside an operator that
// does not follow the topology, package controller writes what [Decide] returns. Every function here is pure.
package console
