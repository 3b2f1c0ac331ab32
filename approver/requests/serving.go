// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"

	"github.com/solonode/sno/approver/internal/plain"
)

func checkNodeItself(p *parsed) *Finding {
	user := p.Request.Spec.Username
	return require(user == nodePrefix+p.node, ReasonRequestorWrong, "%q requests a certificate of %q; only the node itself may", user, p.node)
}

func checkNodeThere(p *parsed) *Finding {
	if p.Nodes == nil {
		return refuse(ReasonNodesUnknown, nodesUnknown)
	}
	return require(p.Nodes.Has(p.node), ReasonNodeMissing, "There is no Node %q", p.node)
}

func checkNames(p *parsed) *Finding {
	return require(len(p.content.DNSNames)+len(p.content.IPAddresses) > 0, ReasonNoNames,
		"It requests neither a DNS name nor an IP address, so nothing could be proven")
}

// checkPlainNames refuses proven names as well, so that a name once approved by hand is not renewed forever.
func checkPlainNames(p *parsed) *Finding {
	for _, name := range p.content.DNSNames {
		if problem := plain.InvalidHost(name); problem != "" {
			return refuse(ReasonNamesNotPlain, "It requests %q, which %s", name, problem)
		}
	}
	for _, address := range addressesOf(p.content.IPAddresses) {
		if problem := plain.InvalidAddress(address); problem != "" {
			return refuse(ReasonNamesNotPlain, "It requests %s, which %s", address, problem)
		}
	}
	return nil
}

// addressesOf keeps the length of each address: an IPv4-mapped address differs from the IPv4 address.
func addressesOf[IP ~[]byte](ips []IP) []netip.Addr {
	list := make([]netip.Addr, len(ips))
	for i, ip := range ips {
		list[i], _ = netip.AddrFromSlice(ip)
	}
	return list
}

func (p *parsed) unlisted() (names []string, addresses []netip.Addr) {
	names, addresses = slices.Clone(p.content.DNSNames), addressesOf(p.content.IPAddresses)
	if p.entry == nil {
		return names, addresses
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(p.entry.DNSNames, name) })
	return names, slices.DeleteFunc(addresses, func(address netip.Addr) bool { return slices.Contains(p.entry.Addresses, address) })
}

func (p *parsed) source() string {
	if names, addresses := p.unlisted(); p.flow == ServingFlow && len(names)+len(addresses) > 0 {
		return ReasonProvenByCertificate
	}
	return ReasonProvenByInventory
}

func checkProvenNames(p *parsed) *Finding {
	names, addresses := p.unlisted()
	if len(names)+len(addresses) == 0 {
		return nil
	}
	current, status := p.current()
	proven := append(p.egress(current), addressesOf(current.IPAddresses)...)
	var missing []string
	for _, name := range names {
		if !slices.Contains(current.DNSNames, name) {
			missing = append(missing, name)
		}
	}
	for _, address := range addresses {
		if !slices.Contains(proven, address) {
			missing = append(missing, address.String())
		}
	}
	return require(len(missing) == 0, ReasonNamesNotProven,
		"Neither the inventory nor the kubelet's current certificate contains %q (%s)", missing, status)
}

// current returns the kubelet's verified certificate, or an empty one, and a status for messages.
func (p *parsed) current() (*x509.Certificate, string) {
	none := &x509.Certificate{}
	if p.KubeletCertificate == nil || len(p.KubeletCertificate.Chain) == 0 {
		return none, "the kubelet presented no certificate"
	}
	if p.KubeletCertificate.Roots == nil { // x509 would use the authorities of this machine
		return none, "the authority of the kubelets is not known"
	}
	leaf, intermediates := p.KubeletCertificate.Chain[0], x509.NewCertPool()
	for _, certificate := range p.KubeletCertificate.Chain[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: p.KubeletCertificate.Roots, Intermediates: intermediates, CurrentTime: p.Now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	switch {
	case err != nil:
		return none, "the presented certificate cannot be verified: " + err.Error()
	case !isSubjectOf(leaf.RawSubject, p.node):
		return none, fmt.Sprintf("the presented certificate is of %q", leaf.Subject.String())
	}
	return leaf, "the presented certificate is valid"
}

// egress returns the egress IPs that a renewal may add: it has the DNS names of the current certificate, and a name or
// an address of it.
func (p *parsed) egress(current *x509.Certificate) []netip.Addr {
	names, held := p.content.DNSNames, addressesOf(current.IPAddresses)
	renews := len(names) > 0 || slices.ContainsFunc(addressesOf(p.content.IPAddresses), func(ip netip.Addr) bool { return slices.Contains(held, ip) })
	if p.EgressIPs.Node != p.node || !renews || !slices.Equal(slices.Sorted(slices.Values(current.DNSNames)), slices.Sorted(slices.Values(names))) {
		return nil
	}
	return slices.Clone(p.EgressIPs.IPs)
}
