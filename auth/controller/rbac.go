package controller

// Every rule names the one object that it is about, also for lists and watches, which ask for it by name. Nodes cannot be named
// beforehand; they are only read.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// What is patched, by server-side apply, and where the sub-conditions are shown. Events about an object without a namespace go
// to the namespace default.
// +kubebuilder:rbac:groups=operator.openshift.io,resources=authentications,resourceNames=cluster,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=authentications/status,resourceNames=cluster,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=default,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,namespace=openshift-authentication,resources=deployments,resourceNames=oauth-openshift,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,namespace=openshift-oauth-apiserver,resources=deployments,resourceNames=apiserver,verbs=get;list;watch;patch

// Leader election, in the namespace that the controller runs in, and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=auth-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Metrics are served to authenticated and authorized clients only.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
