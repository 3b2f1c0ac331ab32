// SPDX-License-Identifier: Apache-2.0

package controller

// Which hub this is.
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// What selects clusters, and what they get.
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=clustermanagementaddons;addondeploymentconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters;placements;placementdecisions,verbs=get;list;watch

// The add-on of each cluster: its status, and the finalizer of the release.
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=clustermanagementaddons/status,resourceNames=sno,verbs=patch
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=managedclusteraddons,verbs=get;list;watch
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=managedclusteraddons,resourceNames=sno,verbs=update
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=managedclusteraddons/status,resourceNames=sno,verbs=patch
// The owner of a ManifestWork may block its deletion.
// +kubebuilder:rbac:groups=addon.open-cluster-management.io,resources=managedclusteraddons/finalizers,resourceNames=sno,verbs=update

// The manifests of each cluster. A create cannot be limited to a name; execute-as names the executor.
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,resourceNames="system:serviceaccount:sno-system:sno-fleet-executor",verbs=execute-as

// The add-on framework watches these requests. The add-on makes none, and none is approved.
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=list;watch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=fleet-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch
