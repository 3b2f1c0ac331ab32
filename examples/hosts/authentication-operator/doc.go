// SPDX-License-Identifier: Apache-2.0

// Command authentication-operator is a small stand-in for OpenShift's authentication operator, and the example of one
// that is built on controller-runtime and vendors github.com/solonode/sno/auth. It maintains the Deployments
// openshift-authentication/oauth-openshift and openshift-oauth-apiserver/apiserver with their PodDisruptionBudgets,
// requests the well-known endpoint of every API server, and reports on authentications.operator.openshift.io/cluster.
// See README.md.
//
//	authentication-operator --kubeconfig FILE [--stock] [--well-known-path PATH] [--well-known-every DURATION]
//	  [--well-known-server-name NAME] [--connect-to ENDPOINT=ADDRESS]...
//
// Its Deployments do nothing: there is no image, Service, Route or configuration. It is for clusters with simulated
// nodes.
package main
