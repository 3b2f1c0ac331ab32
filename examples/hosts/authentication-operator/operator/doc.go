// Package operator is a controller-runtime authentication operator in miniature.
//
//   - vendored.go is all that an operator changes to vendor github.com/solonode/sno/auth: the calls that answer what depends on
//     the topology, and how the well-known endpoint stands.
//   - stock.go answers the same as today's stock operator does, for comparison (--stock).
//   - nodes.go counts the control-plane nodes that the vendored module asks for.
//   - deployment.go is what any authentication operator has: the Deployments without their topology.
//   - reconciler.go makes the Deployments and budgets what they should be; wellknown.go and probe.go look at the API servers.
//   - status.go and write.go report and write, where and only where something differs from what is wanted.
package operator
