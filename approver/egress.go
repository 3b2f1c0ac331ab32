package approver

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Egress are the egress IP addresses of one node, as the HostSubnet of OpenShift SDN has them in egressIPs. Its kubelet finds them on an
// interface and asks for them when it renews its serving certificate. The zero value is that of a node without any.
//
// Ranges (egressCIDRs) are no proof: a node could serve by any address in them. The network writes those that it assigns into egressIPs.
type Egress struct {
	// Node is the name of the HostSubnet, which is that of the node.
	Node string
	// IPs are the addresses that the network has assigned to it.
	IPs []netip.Addr
}

// EgressOf reads the addresses of a HostSubnet. An address that is none, and a HostSubnet without a name, are ErrInputs.
func EgressOf(node string, egressIPs ...string) (Egress, error) {
	e := Egress{Node: node}
	if node == "" {
		return Egress{}, fmt.Errorf("%w: egress IPs of no node", ErrInputs)
	}
	for _, text := range egressIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return Egress{}, fmt.Errorf("%w: egress IP %q of node %q: %w", ErrInputs, text, node, err)
		}
		e.IPs = append(e.IPs, ip)
	}
	return e, nil
}

// egress are the addresses that a renewal may have beside those of the current certificate: the request must be for the very DNS names
// of that, and go on with at least one of its names or addresses.
func (in *Inputs) egress(current *x509.Certificate) []netip.Addr {
	request := in.Request.X509
	if current == nil || in.Egress.Node != in.Request.Node() ||
		!slices.Equal(slices.Sorted(slices.Values(current.DNSNames)), slices.Sorted(slices.Values(request.DNSNames))) {
		return nil
	}
	if len(request.DNSNames) == 0 && !slices.ContainsFunc(request.IPAddresses, func(ip net.IP) bool { return serves(current, ip) }) {
		return nil
	}
	return in.Egress.IPs
}

// serves reports whether the certificate is for the address.
func serves(certificate *x509.Certificate, address net.IP) bool {
	return slices.ContainsFunc(certificate.IPAddresses, func(ip net.IP) bool { return addressOf(ip) == addressOf(address) })
}
