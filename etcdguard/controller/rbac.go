package controller

// Every rule names the object that it is about. Nodes cannot be named beforehand, and the two budgets are watched together; both
// are only read.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,verbs=get;list;watch

// Whether the guards can ask etcd for its health, and with what the controller asks it for its members.
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=secrets,resourceNames=etcd-client,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=openshift-etcd,resources=configmaps,resourceNames=etcd-ca-bundle,verbs=get;list;watch

// Where the cluster-version-operator is told to let go of the guard. RBAC cannot limit this to two entries of spec.overrides; the
// apply configuration does.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch

// The guard. An apply that makes the object asks for create with its name.
// +kubebuilder:rbac:groups=apps,namespace=openshift-etcd,resources=deployments,resourceNames=etcd-quorum-guard,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,namespace=openshift-etcd,resources=poddisruptionbudgets,resourceNames=etcd-quorum-guard,verbs=create;patch;delete

// Where the sub-conditions are shown. Events about a resource without a namespace are in the namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election, in the namespace that the controller runs in, and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=etcdguard-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Metrics are served to authenticated and authorized clients only.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
