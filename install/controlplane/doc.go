// Package controlplane renders the static pods of a machine's own control plane on that machine, lays them, and applies the manifests when
// its API server is ready. Bootstrapping in place and an all-in-one node do that alike.
package controlplane
