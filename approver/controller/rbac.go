// SPDX-License-Identifier: Apache-2.0

package controller

// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list

// Only --mode=off writes it, with the role of config/off.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch

// An apply that creates the object needs create with its name.
// +kubebuilder:rbac:groups=apps,namespace=openshift-cluster-machine-approver,resources=deployments,resourceNames=machine-approver,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",namespace=openshift-cluster-machine-approver,resources=configmaps,resourceNames=machine-approver-config,verbs=get;list;watch;create;patch;delete

// Events about a resource without a namespace are in the namespace default.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,resourceNames=machine-approver,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators/status,resourceNames=machine-approver,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election; a create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=approver-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
