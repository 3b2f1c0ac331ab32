// SPDX-License-Identifier: Apache-2.0

// Package decision decides what the standalone controller writes beside a stock operator, which makes the Deployments:
// their shape, and the override of the ClusterVersion for downloads. Every function is pure.
package decision
