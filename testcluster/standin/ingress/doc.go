// SPDX-License-Identifier: Apache-2.0

// Package ingress stands in for cluster-ingress-operator: every IngressController becomes Deployment
// openshift-ingress/router-NAME and, for several routers, a PodDisruptionBudget. Nothing is behind the routers: no
// Service, certificate or DNS. Whatever the topology it writes an empty defaultPlacement once (U-ING-3), keeps an
// IngressController until its router is gone, reports the conditions, makes the canary (U-ING-10), and evicts the
// oldest of several available default routers on one node.
package ingress
