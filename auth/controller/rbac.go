// SPDX-License-Identifier: Apache-2.0

package controller

// Inputs. Nodes have no known names.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// The patched objects, conditions and events. Events of a cluster-scoped object are in namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=authentications,resourceNames=cluster,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=authentications/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,namespace=openshift-authentication,resources=deployments,resourceNames=oauth-openshift,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,namespace=openshift-oauth-apiserver,resources=deployments,resourceNames=apiserver,verbs=get;list;watch;patch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=auth-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Authentication and authorization of metrics clients.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
