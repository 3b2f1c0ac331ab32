package controller

// Every rule names its object, except for nodes and budgets, which are only read.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,verbs=get;list;watch

// The certificates with which the guards and the controller connect to etcd.
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=secrets,resourceNames=etcd-client,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=configmaps,resourceNames=etcd-ca-bundle,verbs=get;list;watch

// The two entries of spec.overrides, to which the apply configuration is limited.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch

// The guard. An apply that creates the object needs create with its name.
// +kubebuilder:rbac:groups=apps,namespace=openshift-etcd,resources=deployments,resourceNames=etcd-quorum-guard,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,resourceNames=etcd-quorum-guard,verbs=create;patch;delete

// Sub-conditions. Events about a resource without a namespace are in the namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election and its events, and metrics for authorized clients. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=etcdguard-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
