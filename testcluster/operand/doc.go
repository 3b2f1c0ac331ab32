// Package operand reads and disturbs Deployments on an embedded cluster: a rollout, a drain of a node, a restart of a
// node. It checks the expectations of package scenario and does not depend on the modules under test.
package operand
