// Package operator is a controller-runtime ingress operator in miniature.
//
//   - vendored.go is all that an operator changes to vendor github.com/solonode/sno/ingress: the two calls that answer what
//     depends on the topology.
//   - stock.go answers the same as today's stock operator does, for comparison (--stock).
//   - router.go, publishing.go and status.go are what any ingress operator has: the Deployment without its topology, how the
//     router is published, and the status of the IngressController.
//   - reconciler.go and write.go read the cluster and write to it, where and only where it differs from what is wanted.
//   - revert.go is a fault for tests: an operator that takes other people's nodePlacement off again (--fight).
package operator
