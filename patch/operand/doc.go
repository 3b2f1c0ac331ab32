// SPDX-License-Identifier: Apache-2.0

// Package operand decides about a [Deployment] of another operator that a module shapes: whether its fields are free,
// what to apply, and whether its rollout proceeds. The shapes are from topology/workload.
package operand
