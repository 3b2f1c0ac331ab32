package controller

// Every rule names the objects that it is about. Only a list or watch of several objects of one kind cannot; those are limited to
// the console's own namespace, which holds little else.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=consoles,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,namespace=openshift-console,resources=poddisruptionbudgets,verbs=get;list;watch

// Where the cluster-version-operator is told to let go of downloads. RBAC cannot limit this to one entry of spec.overrides; the
// apply configuration does.
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch

// What is patched, by server-side apply.
// +kubebuilder:rbac:groups=apps,namespace=openshift-console,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=openshift-console,resources=deployments,resourceNames=console;downloads,verbs=patch

// Where the sub-conditions are shown. Events about a resource without a namespace are in the namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=consoles/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch

// Leader election, in the namespace that the controller runs in, and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=console-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Metrics are served to authenticated and authorized clients only.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
