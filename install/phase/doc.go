// SPDX-License-Identifier: Apache-2.0

// Package phase runs the phases of an installation in order. After it was killed the same command continues.
//
// A phase has a step, and a condition that reports whether it is done, read from the machine or the cluster and never
// from memory. Run begins after the last phase that is done, since later phases may remove what earlier ones have made.
// Each phase has a time limit. A status file for tools has what is done, what is running and what it waits for
// (R-BIP-3).
package phase
