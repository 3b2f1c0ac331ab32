// SPDX-License-Identifier: Apache-2.0

// Package matrix compares reports of the conformance suite on many clusters with the failures that are expected, and
// prints them as a table.
package matrix
