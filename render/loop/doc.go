// SPDX-License-Identifier: Apache-2.0

// Package loop runs control loops over the API in memory of package store: each once, in the declared order, and a
// declared cycle until a round writes nothing (R-REN-4, R-REN-5).
//
// The order is verified. A loop must declare what it writes, and objects that it has read must not change after it has
// run: if a later loop writes an object that an earlier one has read or not found, the run fails and names both.
package loop
