// SPDX-License-Identifier: Apache-2.0

// Package catalogue contains the checks and the data that they read.
//
// A check has a stable id, a requirement (docs/requirements.md), a pure function that returns evidence, and controls:
// changes with which it must fail (negative) or must pass (positive). A check with a wrong control is inconclusive.
// Each file with an id in its name is one check, or checks that differ only in what they are about.
//
// Static checks evaluate a [State]. Scheduled checks evaluate what the runner has seen of copies of Deployments, which
// the cluster's scheduler and controllers run in namespaces of their own. Disruptive checks evaluate the record of an
// [Act], such as a restart of nodes. Packages runner and disturb produce both; this package imports neither.
//
// Expectations are written by hand from the requirements; no code of the modules is called.
//
// Controls run with every passing check, on every cluster. They change a copy of the [Input], never the cluster.
package catalogue
