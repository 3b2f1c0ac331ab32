// SPDX-License-Identifier: Apache-2.0

// Package engine finds the container engine of this machine and uses it through its command-line client. It starts
// none; hack/engine does.
package engine
