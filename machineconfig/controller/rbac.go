// SPDX-License-Identifier: Apache-2.0

package controller

// Objects with fixed names are listed by name; nodes and pods have none.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=controllerconfigs,resourceNames=machine-config-controller,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=machineconfigurations,resourceNames=cluster,verbs=get;list;watch

// config/admission limits a patch of a node to the cordon and annotations.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch

// Pods are evicted, not deleted. A pod is skipped only if its DaemonSet exists.
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get

// For --drain-policy=workers.
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets;statefulsets,verbs=list

// An apply that creates an object is authorized as create with its name.
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=kubeletconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=kubeletconfigs,resourceNames=sno-graceful-shutdown,verbs=create;patch;delete
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigs,resourceNames=99-master-sno-graceful-shutdown,verbs=get;list;watch;create;patch;delete

// Conditions, and events, which are in the namespace default for cluster-scoped objects.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=machineconfigurations/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=machineconfig-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Authentication and authorization of metrics clients.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
