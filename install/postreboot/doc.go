// SPDX-License-Identifier: Apache-2.0

// Package postreboot finishes the installation on the installed node: the node joins, the operators take over the
// control plane, and the files of the bootstrap phase are removed (R-BIP-2, R-BIP-17, R-BIP-18).
package postreboot
