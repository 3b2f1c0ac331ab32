// SPDX-License-Identifier: Apache-2.0

// Package decision decides what the standalone controller writes beside a stock machine-config operator: the objects of
// the graceful shutdown, and the topology annotation of nodes. Every function is pure.
package decision
