// SPDX-License-Identifier: Apache-2.0

// Package joining simulates nodes that request certificates on an embedded cluster: the bootstrapper, the node itself,
// its kubelet's TLS, and the outside tool that approves. The requests and their signers are real.
package joining
