// SPDX-License-Identifier: Apache-2.0

// Package workspace finds the repository and the Go modules of its go.work, so that other programs in hack/ need no
// lists of modules.
package workspace
