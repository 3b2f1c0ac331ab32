// Package checks holds the catalogue: what a cluster must do on a single node and what it must keep doing on three, as checks with stable
// ids. A check is a requirement (docs/requirements.md), a way to look, and controls: changes of the cluster that it must notice, and changes that it must
// not mind. A check whose control goes unnoticed is inconclusive, never passed.
//
// Checks come in three tiers. Static ones read. Scheduled ones have the real scheduler and the real controllers of the cluster work on copies
// of its Deployments ([WorkloadCopier]), in namespaces of their own, so that nothing of the cluster is touched. Disruptive ones disturb the cluster
// itself ([Disruptor]): pods are evicted, nodes restart, the topology changes.
//
// What is expected is written here by hand from the requirements. No code of the modules under test is called.
//
// Controls change what was read ([State]) or what was recorded, never the cluster: a static check is done again on the changed copy, a
// scheduled one lets the scheduler work on a Deployment that was changed so. They run with every run of a check, on every cluster.
package checks
