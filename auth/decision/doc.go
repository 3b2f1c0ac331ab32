// SPDX-License-Identifier: Apache-2.0

// Package decision decides what the standalone controller writes beside a stock operator: the shape of its Deployments,
// and the override that old releases need. Every function is pure.
package decision
