// SPDX-License-Identifier: Apache-2.0

// Package cluster is the access of a run to a cluster: the target, limits of waits, and reading the State that checks
// evaluate.
package cluster
