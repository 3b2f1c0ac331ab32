// Package operator is a library-go console operator in miniature: informers, one factory controller whose sync brings
// everything to where it belongs, resourceapply for what it writes, the generations in the operator's status, and events for
// what it did.
//
//   - vendored.go is all that an operator changes to vendor github.com/solonode/sno/console: the calls that answer what
//     depends on the topology.
//   - stock.go answers the same as today's stock operator does, for comparison (--stock).
//   - deployment.go is what any console operator has: the Deployments without their topology.
//   - sync.go and status.go read the cluster, write to it and report.
package operator
