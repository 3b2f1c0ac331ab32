// SPDX-License-Identifier: Apache-2.0

// Package proof contains the tests on every kind of cluster, which are too long for `make test`. With -short, as CI
// runs them, each takes a fixed list of clusters that stands in the test, otherwise every one.
//
// It tests the main job on every scenario, and with the real scheduler the Deployments of the console and auth modules:
// they roll out, nodes can be drained and restarted, topology changes are followed both ways, and no writes remain.
// Package scenario contains the expected results.
//
// On random clusters the real scheduler must place every pod of a drain that the machineconfig module's fit check
// allows. The kubelet's loader and Ignition's parser read that module's configuration of shutdowns.
package proof
