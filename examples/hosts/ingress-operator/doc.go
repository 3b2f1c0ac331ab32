// SPDX-License-Identifier: Apache-2.0

// Command ingress-operator is a small stand-in for OpenShift's ingress operator, and the example of one that is built
// on controller-runtime and vendors github.com/solonode/sno/ingress. It maintains a router Deployment and a
// PodDisruptionBudget for every IngressController, and reports in its status. See README.md.
//
//	ingress-operator --kubeconfig FILE [--create-default] [--stock] [--revert-placement [--revert-every DURATION]]
//
// Its routers do nothing: there is no image, Service, certificate or DNS. It is for clusters with simulated nodes.
package main
