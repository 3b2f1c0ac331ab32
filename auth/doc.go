// SPDX-License-Identifier: Apache-2.0

// Package auth adapts OpenShift's OAuth servers to clusters with fewer than three control-plane nodes: as many replicas
// as the topology has room for, rollouts and drains that finish, and health checks that accept a single replica.
//
// An authentication operator vendors the package and calls [MinimumControlPlaneNodes], [ShapeOAuthServer],
// [ShapeOAuthAPIServer], their budgets and [WellKnownReadiness]. For a stock operator, package controller writes what
// package decision decides. Every function is pure; time is an argument.
//
// WellKnownReadiness returns, by the number of API servers that serve the endpoint:
//
//	served by             mode           Available            Progressing  Degraded
//	all                   any            yes                  no           no
//	some                  any            yes                  no           after DegradedAfter
//	none, <=RolloutGrace  SingleReplica  yes, if it was       yes          no
//	none                  SingleReplica  no                   no           after DegradedAfter
//	none                  others         no                   no           yes
package auth
