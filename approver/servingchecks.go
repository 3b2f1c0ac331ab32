package approver

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver/inventory"
)

var nodeGroups = []string{nodesGroup, "system:authenticated"}

func checkItself(in *Inputs) *fault {
	if in.Request.Username == nodePrefix+in.Request.Node() {
		return nil
	}
	return &fault{ReasonRequestorWrong, fmt.Sprintf("%q asks for a certificate of %q; only the node itself may", in.Request.Username, in.Request.Node())}
}

func checkNodeGroups(in *Inputs) *fault { return checkGroups(in.Request.Groups, nodeGroups) }

func checkServingUsages(in *Inputs) *fault {
	return checkUsages(in.Request.Usages, certificatesv1.UsageServerAuth)
}

func checkServingContents(in *Inputs) *fault {
	return checkContents(in.Request.X509, in.Request.X509.DNSNames, in.Request.X509.IPAddresses)
}

func checkNodeThere(in *Inputs) *fault {
	switch {
	case in.Nodes == nil:
		return nodesUnknown()
	case !in.Nodes.Has(in.Request.Node()):
		return &fault{ReasonNodeMissing, fmt.Sprintf("There is no Node %q", in.Request.Node())}
	}
	return nil
}

func checkNames(in *Inputs) *fault {
	if len(in.Request.X509.DNSNames)+len(in.Request.X509.IPAddresses) > 0 {
		return nil
	}
	return &fault{ReasonNoNames, "It asks for neither a DNS name nor an IP address, so nothing could be proven"}
}

// checkPlainNames holds for proven names as well: what somebody once approved by hand is not renewed for ever.
func checkPlainNames(in *Inputs) *fault {
	for _, name := range in.Request.X509.DNSNames {
		if problem := inventory.HostProblem(name); problem != "" {
			return &fault{ReasonNamesNotPlain, fmt.Sprintf("It asks for %q, which %s", name, problem)}
		}
	}
	for _, address := range in.Request.X509.IPAddresses {
		if problem := inventory.AddressProblem(addressOf(address)); problem != "" {
			return &fault{ReasonNamesNotPlain, fmt.Sprintf("It asks for %s, which %s", address, problem)}
		}
	}
	return nil
}

// addressOf keeps the length of the address: an IPv4-mapped one is not the IPv4 address.
func addressOf(ip net.IP) netip.Addr {
	address, _ := netip.AddrFromSlice(ip)
	return address
}

// missing are the names and addresses of the request that the inventory does not have.
func (in *Inputs) missing() (names []string, addresses []net.IP) {
	node := in.Inventory.Node(in.Request.Node())
	for _, name := range in.Request.X509.DNSNames {
		if !node.HasDNSName(name) {
			names = append(names, name)
		}
	}
	for _, address := range in.Request.X509.IPAddresses {
		if !node.HasAddress(addressOf(address)) {
			addresses = append(addresses, address)
		}
	}
	return names, addresses
}

// source is the reason with which the request is approved, if it is.
func (in *Inputs) source() string {
	if names, addresses := in.missing(); in.Request.Flow() == ServingFlow && len(names)+len(addresses) > 0 {
		return ReasonProvenByCertificate
	}
	return ReasonProvenByInventory
}

// checkProvenNames is the second source.
func checkProvenNames(in *Inputs) *fault {
	names, addresses := in.missing()
	if len(names)+len(addresses) == 0 {
		return nil
	}
	current, problem := in.Shown.certificateOf(in.Request.Node(), in.Now)
	var missing []string
	for _, name := range names {
		if current == nil || !slices.Contains(current.DNSNames, name) {
			missing = append(missing, fmt.Sprintf("%q", name))
		}
	}
	egress := in.egress(current)
	for _, address := range addresses {
		if current == nil || !serves(current, address) && !slices.Contains(egress, addressOf(address)) {
			missing = append(missing, address.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &fault{ReasonNamesNotProven, fmt.Sprintf("Neither the inventory nor the certificate that the kubelet serves with has %s (%s)",
		list(missing), problem)}
}

// certificateOf is the certificate with which the node's kubelet serves now: valid now, signed for servers by the cluster's
// authority, with the node's subject. The handshake proved that who showed it has its key. Otherwise it is nil, and why.
func (s *Shown) certificateOf(node string, now time.Time) (*x509.Certificate, string) {
	if s == nil || len(s.Chain) == 0 {
		return nil, "the kubelet showed no certificate"
	}
	if s.Roots == nil { // x509 would take the authorities of this machine
		return nil, "the authority of the kubelets is not known"
	}
	leaf, between := s.Chain[0], x509.NewCertPool()
	for _, certificate := range s.Chain[1:] {
		between.AddCert(certificate)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: s.Roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	switch {
	case err != nil:
		return nil, "the one that it showed does not verify: " + err.Error()
	case !isSubjectOf(leaf.RawSubject, node):
		return nil, fmt.Sprintf("the one that it showed is of %q", leaf.Subject.String())
	}
	return leaf, "it showed one that verifies"
}

// maxListed is how many values a message names.
const maxListed = 5

// list is for messages.
func list(values []string) string {
	text := strings.Join(values[:min(len(values), maxListed)], ", ")
	if more := len(values) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
