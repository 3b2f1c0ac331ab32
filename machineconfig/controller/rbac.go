package controller

// Every rule names the objects that it is about, where they have names that are known beforehand. Nodes and pods have not.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=controllerconfigs,resourceNames=machine-config-controller,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=machineconfigurations,resourceNames=cluster,verbs=get;list;watch

// Nodes are cordoned and answered. RBAC cannot limit this to the cordon and two annotations; what is sent does.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch

// Pods are evicted, never deleted, so that budgets are honoured. A pod of a DaemonSet that is gone goes as well.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get

// Whether a worker's pods fit elsewhere, for --drain-policy=workers.
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets;statefulsets,verbs=list

// The graceful shutdown. An apply that makes the object asks for create with its name.
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=kubeletconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=kubeletconfigs,resourceNames=sno-graceful-shutdown,verbs=create;patch;delete
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigs,resourceNames=99-master-sno-graceful-shutdown,verbs=get;list;watch;create;patch;delete

// Where the sub-conditions are shown. Events about a resource without a namespace are in the namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=machineconfigurations/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election, in the namespace that the controller runs in, and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=machineconfig-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Metrics are served to authenticated and authorized clients only.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
