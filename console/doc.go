// Package console adapts the web console and its downloads server to clusters with one control-plane node: one replica
// without anti-affinity, rollouts without an outage, and no disruption budget for a single pod.
//
// A console operator vendors the package and calls [ShapeDeployment] and [PodDisruptionBudget]. For a stock operator,
// package controller writes what [Decide] returns. Every function is pure.
package console
