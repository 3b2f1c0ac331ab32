// SPDX-License-Identifier: Apache-2.0

package controller

// Every rule names its object, so other IngressControllers can be neither read nor written.

// Inputs.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures;ingresses,resourceNames=cluster,verbs=get;list;watch

// The patched object, conditions and events.
// +kubebuilder:rbac:groups=operator.openshift.io,namespace=openshift-ingress-operator,resources=ingresscontrollers,resourceNames=default,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.openshift.io,namespace=openshift-ingress-operator,resources=ingresscontrollers/status,resourceNames=default,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=openshift-ingress-operator,resources=events,verbs=create;patch

// The router.
// +kubebuilder:rbac:groups=apps,namespace=openshift-ingress,resources=deployments,resourceNames=router-default,verbs=get;list;watch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=ingress-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Authentication and authorization of metrics clients.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
