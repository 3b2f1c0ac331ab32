// SPDX-License-Identifier: Apache-2.0

// Package bench measures the controllers on embedded clusters: how fast a change of the topology reaches the patched
// object, what is written at rest, and how much memory a large cluster costs. The figures in docs/benchmarks.md come
// from here.
package bench
