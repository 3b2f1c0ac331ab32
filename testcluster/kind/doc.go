// SPDX-License-Identifier: Apache-2.0

// Package kind makes clusters of real kubelets in containers, with kind (sigs.k8s.io/kind) as a library: preconditions,
// a network without an image to pull, restarts of nodes, and a complete removal, also after an interruption in any
// phase.
//
// Several clusters can run in parallel: each has a separate network. These are real here and simulated on an embedded
// cluster: traffic, probes, images, certificate requests, reboots, static pods.
package kind
