// SPDX-License-Identifier: Apache-2.0

// Package export writes the objects of a render as manifests for the new API server, and reads them again (R-REN-7).
//
// Files are numbered in an order in which they can be created: Namespaces, CustomResourceDefinitions, service accounts,
// roles and bindings, ConfigMaps and Secrets, Services, and then all others.
//
// A manifest has the whole object. An API server takes the status of most resources in a second request, whose body is
// in StatusDir:
//
//	kubectl create -f manifests/
//	kubectl apply --server-side --subresource=status --field-manager=sno-render -f manifests/status/
//
// Without the second command Infrastructure has no topologies, names and URLs, FeatureGate no gates, and the operators'
// resources no revision.
//
// Fields that a server owns are left out: resourceVersion, uid, generation, creationTimestamp, managedFields, selfLink.
// So are owner references: the owner has another uid in the new cluster, and the garbage collector would delete the
// object (U-REN-29).
package export
