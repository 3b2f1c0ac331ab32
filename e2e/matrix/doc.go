// SPDX-License-Identifier: Apache-2.0

// Package matrix runs the conformance suite on many clusters in parallel (R-SUITE-1, R-SUITE-5), each in its own
// process, so that a fault of one does not affect the others. It only depends on a command that leaves a report.
package matrix
