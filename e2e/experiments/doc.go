// SPDX-License-Identifier: Apache-2.0

// Package experiments tests on real kubelets what simulated nodes cannot show: traffic through a real proxy,
// certificates of nodes that join, grace periods, guards of a real etcd. Each kindtarget.Experiment fails if the
// behaviour is missing, and writes its measurements as bench.Row.
package experiments
