// SPDX-License-Identifier: Apache-2.0

// Package disturb performs the acts of disruptive checks: it evicts pods, restarts nodes, requests drains, changes the
// topology, stops the API server and has the cluster upgraded. Each act is performed once in a run, and restores what
// it changed. What came of it is in catalogue.Records.
package disturb
