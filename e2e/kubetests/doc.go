// SPDX-License-Identifier: Apache-2.0

// Package kubetests runs Kubernetes' own conformance tests on a single-node cluster of real kubelets, with the modules
// on and with them off, and compares (R-SUITE-1). What is skipped is in skips.yaml, each with its reason.
package kubetests
