// Package postreboot finishes the installation on the installed node, as phases: the node joins, the operators take the
// control plane over, and nothing of the bootstrap phase is left (R-BIP-2, R-BIP-17, R-BIP-18).
package postreboot
