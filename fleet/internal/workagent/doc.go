// SPDX-License-Identifier: Apache-2.0

// Package workagent is, in tests, the part of Open Cluster Management's work agent that reads objects: the feedback and
// conditions that it reports for a manifest, by the rules of a ManifestWork. CEL has the agent's own environment.
package workagent
