// SPDX-License-Identifier: Apache-2.0

package kubescheduler

const (
	namespace        = "openshift-kube-scheduler"
	managedNamespace = "openshift-config-managed"
)

// component is used in file names, leases, and as the owner of certificates.
const (
	component = "kube-scheduler"
	podName   = "openshift-kube-scheduler"
)

const (
	port        = 10259
	recoverPort = 11443
)

const clientCertificate = "kube-scheduler-client-cert-key"
