// Package kind makes clusters of real kubelets in containers, with kind (sigs.k8s.io/kind) as a library: their preconditions, their network
// without an image to pull, restarts of nodes, and their end, which leaves nothing behind, an interruption in any phase included.
//
// Several clusters can run side by side: each has a network of its own. What is real here and simulated on an embedded cluster: traffic, probes,
// images, certificate requests, reboots, static pods.
package kind
