// SPDX-License-Identifier: Apache-2.0

// Command console-operator is a small stand-in for OpenShift's console operator, and the example of one in the style of
// openshift/library-go that vendors github.com/solonode/sno/console. It creates and maintains the Deployments of the
// console and of its downloads server, and their PodDisruptionBudgets, and reports on
// consoles.operator.openshift.io/cluster. See README.md.
//
//	console-operator --kubeconfig FILE [--downloads=false] [--stock]
//
// Its Deployments do nothing: there is no image, Service, Route or configuration. It is for clusters with simulated
// nodes.
package main
