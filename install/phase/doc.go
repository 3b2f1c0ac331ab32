// Package phase runs the phases of an installation, in order, so that the same command goes on where it was killed.
//
// A phase has a condition that reports whether it is done, which is read from the machine or the cluster and never from memory, and a
// step. Run looks for the last phase that is done, and begins with the one after it: a later phase may remove what an earlier one
// has made. Each phase has a time limit. A status file has what is done, what is running and what that waits for, so that
// whoever drives many installations need not read logs (R-BIP-3).
package phase
