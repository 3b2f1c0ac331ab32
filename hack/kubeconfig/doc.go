// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig finds faults of a kubeconfig in a second, for `make conformance KUBECONFIG=file` to report
// before it builds anything. It only rejects what cannot work.
package kubeconfig
