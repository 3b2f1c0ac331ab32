// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
)

// PayloadNamespaces are the sorted namespaces of the release payload on all platforms. Other openshift-* namespaces
// belong to add-ons such as storage or GitOps, which need not follow the topology; so does openshift-operators, which
// comes with the payload.
func PayloadNamespaces() []string {
	return []string{
		"openshift-apiserver", "openshift-apiserver-operator", "openshift-authentication", "openshift-authentication-operator", "openshift-catalogd",
		"openshift-cloud-controller-manager", "openshift-cloud-controller-manager-operator", "openshift-cloud-credential-operator",
		"openshift-cloud-network-config-controller", "openshift-cloud-platform-infra", "openshift-cluster-api", "openshift-cluster-csi-drivers",
		"openshift-cluster-machine-approver", "openshift-cluster-node-tuning-operator", "openshift-cluster-olm-operator",
		"openshift-cluster-samples-operator", "openshift-cluster-storage-operator", "openshift-cluster-version", "openshift-config",
		"openshift-config-managed", "openshift-config-operator", "openshift-console", "openshift-console-operator", "openshift-controller-manager",
		"openshift-controller-manager-operator", "openshift-dns", "openshift-dns-operator", "openshift-etcd", "openshift-etcd-operator",
		"openshift-host-network", "openshift-image-registry", "openshift-infra", "openshift-ingress", "openshift-ingress-canary",
		"openshift-ingress-operator", "openshift-insights", "openshift-kni-infra", "openshift-kube-apiserver", "openshift-kube-apiserver-operator",
		"openshift-kube-controller-manager", "openshift-kube-controller-manager-operator", "openshift-kube-scheduler",
		"openshift-kube-scheduler-operator", "openshift-kube-storage-version-migrator", "openshift-kube-storage-version-migrator-operator",
		"openshift-machine-api", "openshift-machine-config-operator", "openshift-marketplace", "openshift-monitoring", "openshift-multus",
		"openshift-network-console", "openshift-network-diagnostics", "openshift-network-node-identity", "openshift-network-operator",
		"openshift-nutanix-infra", "openshift-oauth-apiserver", "openshift-openstack-infra", "openshift-operator-controller",
		"openshift-operator-lifecycle-manager", "openshift-ovirt-infra", "openshift-ovn-kubernetes", "openshift-quorum-guard",
		"openshift-route-controller-manager", "openshift-sdn", "openshift-service-ca", "openshift-service-ca-operator",
		"openshift-user-workload-monitoring", "openshift-vsphere-infra",
	}
}

// payload decides which namespaces belong to OpenShift, and records those that it has met.
type payload struct {
	chosen []string
	// others begin with openshift- and do not count.
	here, others map[string]bool
}

func newPayload(chosen []string) *payload {
	if len(chosen) == 0 {
		chosen = PayloadNamespaces()
	}
	return &payload{chosen: chosen, here: map[string]bool{}, others: map[string]bool{}}
}

func (p *payload) has(namespace string) bool {
	has := slices.Contains(p.chosen, namespace)
	switch {
	case has:
		p.here[namespace] = true
	case strings.HasPrefix(namespace, "openshift-") && !strings.HasPrefix(namespace, "openshift-must-gather-"): // temporary
		p.others[namespace] = true
	}
	return has
}

// InPayload reports whether a namespace is one of the chosen ones, by default PayloadNamespaces.
func InPayload(chosen []string, namespace string) bool { return newPayload(chosen).has(namespace) }
