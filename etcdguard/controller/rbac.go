// SPDX-License-Identifier: Apache-2.0

package controller

// Every rule names its object, except for nodes and budgets, which are only read.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,verbs=get;list;watch

// Client certificates for etcd.
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=secrets,resourceNames=etcd-client,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=configmaps,resourceNames=etcd-ca-bundle,verbs=get;list;watch

// config/admission limits the patch to the two entries of spec.overrides.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch

// The guard. An apply that creates an object is authorized as create with its name.
// +kubebuilder:rbac:groups=apps,namespace=openshift-etcd,resources=deployments,resourceNames=etcd-quorum-guard,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,resourceNames=etcd-quorum-guard,verbs=create;patch;delete

// Conditions, and events, which are in the namespace default for cluster-scoped objects.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election, events, and authorization of metrics clients. A create of a Lease cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=etcdguard-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
