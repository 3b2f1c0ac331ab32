package kubescheduler

// Namespaces of the operand and of what operators share.
const (
	namespace        = "openshift-kube-scheduler"
	managedNamespace = "openshift-config-managed"
)

// component is the name in the files' names, in leases, and as the owner of certificates. The pod has another name.
const (
	component = "kube-scheduler"
	podName   = "openshift-kube-scheduler"
)

const (
	port        = 10259
	recoverPort = 11443
)

const clientCertificate = "kube-scheduler-client-cert-key"
