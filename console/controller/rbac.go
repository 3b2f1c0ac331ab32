// SPDX-License-Identifier: Apache-2.0

package controller

// Inputs. A list of several objects of a kind cannot be limited to names.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=consoles,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,namespace=openshift-console,resources=poddisruptionbudgets,verbs=get;list;watch

// The override. config/admission limits the patch to one entry of spec.overrides.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch

// The Deployments.
// +kubebuilder:rbac:groups=apps,namespace=openshift-console,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=openshift-console,resources=deployments,resourceNames=console;downloads,verbs=patch

// Conditions and events. Those of a cluster-scoped object are in namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=consoles/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=console-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Authentication and authorization of metrics clients.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
