// SPDX-License-Identifier: Apache-2.0

// Package checks contains the catalogue of checks and the runner.
//
// A check has a stable id, a requirement (docs/requirements.md), a function that returns evidence, and controls:
// changes with which it must fail (negative) or must pass (positive). A check with a wrong control is inconclusive.
//
// Static checks read. Scheduled checks run the cluster's scheduler and controllers on copies of its Deployments in
// their own namespaces ([WorkloadCopier]). Disruptive checks evict pods, restart nodes and change the topology
// ([Disruptor]).
//
// Expectations are written by hand from the requirements; no code of the modules is called.
//
// Controls run with every passing check, on every cluster. They change a copy of the [State], a recorded result, or the
// Deployment of a copy, never the cluster.
package checks
