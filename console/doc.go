// SPDX-License-Identifier: Apache-2.0

// Package console adapts the web console and its downloads server to clusters with one control-plane node: one replica
// without anti-affinity, rollouts without an outage, and no disruption budget for a single pod.
//
// A console operator vendors the package and calls [ShapeDeployment] and [PodDisruptionBudget]. For a stock operator,
// package controller writes what package decision decides. Every function is pure.
//
// Replicas, rolling update and anti-affinity let rollouts and drains finish:
//
//	SingleReplica  1 replica,  unavailable 0, surge 1, no anti-affinity
//	all others     2 replicas, unavailable 1, surge 3, required anti-affinity by hostname
//
// What has this effect already stays as it is spelled: for one replica, 25% is 0 unavailable and 1 surplus pod.
//
// The anti-affinity of old pods can block a rollout, which workload.UnblockRollout prevents.
package console
