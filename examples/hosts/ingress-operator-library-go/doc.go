// SPDX-License-Identifier: Apache-2.0

// Command ingress-operator-library-go is a small stand-in for OpenShift's ingress operator, and the example of an
// operator in the style of openshift/library-go, without controller-runtime, that vendors
// github.com/solonode/sno/ingress. See README.md.
//
//	ingress-operator-library-go --kubeconfig FILE [--create-default]
//
// Its routers do nothing: there is no image, Service, certificate or DNS. It is for clusters with simulated nodes.
package main
