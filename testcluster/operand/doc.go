// Package operand reads and disturbs Deployments on an embedded cluster as life does: a rollout, a drain of a node, a restart of a
// node. It knows what package scenario wants of them and nothing of the modules that shape them.
package operand
