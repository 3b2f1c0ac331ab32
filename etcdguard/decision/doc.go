// SPDX-License-Identifier: Apache-2.0

// Package decision decides what the standalone controller writes: the guard, its budget, and the entries of the
// ClusterVersion that take them over (docs/etcdguard-handover.md). Every function is pure.
package decision
