// Package proof holds the tests that go through every kind of cluster, too long for `make test`; `make proof` runs them. The main job
// holds on every scenario. And what the console and auth modules promise of their Deployments holds on embedded clusters with the
// real scheduler: they roll, nodes can be drained and restarted, a topology that changes at run time is followed both ways, and
// then nothing is written any more. What is expected stands in package scenario, written by hand.
//
// On random clusters the real scheduler places every pod of a drain that the machineconfig module's fit check allows, and what that
// module tells kubelet and logind about shutdowns is read by the kubelet's own loader and by Ignition's own parser.
package proof
