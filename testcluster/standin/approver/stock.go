// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
)

const (
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	nodePrefix   = "system:node:"
)

var (
	bootstrapperGroups = sets.New("system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated")
	nodeGroups         = sets.New("system:nodes", "system:authenticated")
)

// stockDecide has the rules of the stock approver (U-APP-3 to U-APP-5), without a kubelet's current certificate, which
// a simulated one does not have: no topology, a Machine approves any number of client requests until its node joins,
// also after its window if the request was created in it, and the encoding, the key and the age of a request are not
// checked.
func stockDecide(csr *certificatesv1.CertificateSigningRequest, s *sources) requests.Verdict {
	refuse := func(flow requests.Flow, node, reason, message string) requests.Verdict {
		finding := requests.Finding{Reason: reason, Message: message}
		return requests.Verdict{Flow: flow, Node: node, Reason: reason, Message: message, Findings: []requests.Finding{finding}}
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return refuse(requests.OtherFlow, "", requests.ReasonNotPEM, "The request is not PEM")
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return refuse(requests.OtherFlow, "", requests.ReasonMalformed, "The certificate request cannot be parsed")
	}
	node, isNode := strings.CutPrefix(content.Subject.CommonName, nodePrefix)
	client := csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName
	flow, user, groups, usage := requests.ServingFlow, nodePrefix+node, nodeGroups, certificatesv1.UsageServerAuth
	if client {
		flow, user, groups, usage = requests.ClientFlow, bootstrapper, bootstrapperGroups, certificatesv1.UsageClientAuth
	}
	usages := sets.New(csr.Spec.Usages...).Delete(certificatesv1.UsageKeyEncipherment)
	switch {
	case csr.Spec.Username != user:
		return refuse(flow, node, requests.ReasonRequestorWrong, "The requestor is not the one of this flow")
	case !sets.New(csr.Spec.Groups...).Equal(groups):
		return refuse(flow, node, requests.ReasonGroupsWrong, "The groups of the requestor are not those of this flow")
	case !usages.Equal(sets.New(certificatesv1.UsageDigitalSignature, usage)):
		return refuse(flow, node, requests.ReasonUsagesWrong, "The usages are not those of this flow")
	case !isNode || !slices.Equal(content.Subject.Organization, []string{"system:nodes"}):
		return refuse(flow, node, requests.ReasonSubjectWrong, "The subject is not that of a node")
	case client && s.nodes == nil:
		return refuse(flow, node, requests.ReasonNodesUnknown, "The Nodes of the cluster could not be read")
	case client && s.nodes.Has(node):
		return refuse(flow, node, requests.ReasonNodeExists, "The node exists already")
	case client && !slices.ContainsFunc(s.machines, func(m inventory.Machine) bool { return mayJoin(m, node, csr.CreationTimestamp.Time) }):
		return refuse(flow, node, requests.ReasonNotInInventory, "No recent Machine without a node has the node's name as an internal DNS name")
	case !client && !slices.ContainsFunc(s.machines, func(m inventory.Machine) bool { return m.NodeName == node && node != "" && hasNames(m, content) }):
		return refuse(flow, node, requests.ReasonNamesNotProven, "No Machine of the node has all names")
	}
	return requests.Verdict{Approve: true, Reason: requests.ReasonProvenByInventory, Flow: flow, Node: node}
}

func mayJoin(m inventory.Machine, node string, created time.Time) bool {
	return m.NodeName == "" && slices.Contains(m.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: node}) &&
		!created.Before(m.Created.Add(-inventory.MachineSkew)) && !created.After(m.Created.Add(inventory.MachineWindow))
}

func addressesOf[IP ~[]byte](ips []IP) sets.Set[netip.Addr] {
	all := sets.New[netip.Addr]()
	for _, ip := range ips {
		if address, ok := netip.AddrFromSlice(ip); ok {
			all.Insert(address.Unmap())
		}
	}
	return all
}

func hasNames(m inventory.Machine, content *x509.CertificateRequest) bool {
	names, addresses := sets.New[string](), sets.New[netip.Addr]()
	for _, a := range m.Addresses {
		switch a.Type {
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName:
			names.Insert(a.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				addresses.Insert(ip.Unmap())
			}
		}
	}
	return names.HasAll(content.DNSNames...) && addresses.IsSuperset(addressesOf(content.IPAddresses))
}
