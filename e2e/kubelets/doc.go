// SPDX-License-Identifier: Apache-2.0

// Package kubelets is the suite on real kubelets, in containers: what simulated nodes cannot show, such as traffic
// through a real proxy, certificates of nodes that join, grace periods and guards of a real etcd, and Kubernetes' own
// conformance tests. Each process of Ginkgo has its own cluster.
//
// An Env is a cluster of real kubelets with a scenario. The stand-ins of the stock operators run outside of it, and the
// controllers as its pods, from images that are built here, with the rights of their config/ folders. Other suites add
// these to a cluster that they have installed.
package kubelets
