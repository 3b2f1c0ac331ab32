// SPDX-License-Identifier: Apache-2.0

// Package bench is a Ginkgo suite that measures the controllers on embedded clusters: how fast a change of the topology
// reaches the patched objects, how long a drain takes, what is written at rest, and how much memory a large cluster
// costs. The first table of docs/benchmarks.md is from here.
package bench
