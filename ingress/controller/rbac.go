package controller

// Every rule names its one object, also for lists and watches. Other IngressControllers are out of reach, whatever the code does.

// What is read to decide.
// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures;ingresses,resourceNames=cluster,verbs=get;list;watch

// What is patched, and where conditions and events are published.
// +kubebuilder:rbac:groups=operator.openshift.io,namespace=openshift-ingress-operator,resources=ingresscontrollers,resourceNames=default,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=operator.openshift.io,namespace=openshift-ingress-operator,resources=ingresscontrollers/status,resourceNames=default,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=openshift-ingress-operator,resources=events,verbs=create;patch

// What is observed.
// +kubebuilder:rbac:groups=apps,namespace=openshift-ingress,resources=deployments,resourceNames=router-default,verbs=get;list;watch

// Leader election and its events. A create cannot be limited to a name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=sno-system,resources=leases,resourceNames=ingress-controller.sno.solonode.github.io,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=sno-system,resources=events,verbs=create;patch

// Metrics are served to authenticated and authorized clients only.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
