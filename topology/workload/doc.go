// SPDX-License-Identifier: Apache-2.0

// Package workload turns results of topology into fields of Deployments and PodDisruptionBudgets. It is apart from
// topology, whose users need no k8s.io/api.
package workload
