// SPDX-License-Identifier: Apache-2.0

// Package observe has the observers that several operators have in common, as pure functions and as observers, and what
// the target configs of kube-controller-manager and kube-scheduler, clients of kube-apiserver, have in common.
//
// An observer returns a part of spec.observedConfig. Merge merges the parts into a component's default configuration,
// and Flags returns the command line.
package observe
