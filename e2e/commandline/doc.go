// SPDX-License-Identifier: Apache-2.0

// Package commandline is common to the programs that create clusters and machines: an interruption makes them remove
// these.
package commandline
