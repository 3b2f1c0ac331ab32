// SPDX-License-Identifier: Apache-2.0

// Package plain recognizes the names and addresses of single hosts.
package plain

import (
	"net/netip"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	numeric = regexp.MustCompile(`(^|\.)[0-9]+$`)
	// reserved names are those of the API server, a Service, or the machine itself.
	reserved = regexp.MustCompile(`^(localhost[46]?(\.localdomain[46]?)?|(kubernetes|openshift)(\.default)?)$|^api(-int)?\.|\.(localhost|svc)$|^[^.]+\.[^.]+\.svc\.`)
)

// reservedAddresses are those of "this network", of class E with the broadcast address, and of translation to IPv4
// (RFC 6052, RFC 8215), and the API server's Service in OpenShift's and in kubeadm's default network.
var reservedAddresses = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("172.30.0.1/32"), netip.MustParsePrefix("10.96.0.1/32"),
}

// InvalidHost returns why a name is not the name of one host, as a kubelet writes it, or an empty string.
func InvalidHost(name string) string {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard"
	case numeric.MatchString(name):
		return "is neither an IP address nor the name of a host"
	case reserved.MatchString(name):
		return "is reserved for the cluster or the machine itself; no node may serve by it"
	}
	return ""
}

// InvalidAddress returns why an address is not that of one host, or an empty string.
func InvalidAddress(address netip.Addr) string {
	if !address.IsGlobalUnicast() || address.Is4In6() || address.Zone() != "" {
		return "is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone"
	}
	if slices.ContainsFunc(reservedAddresses, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return "is reserved: it belongs to no host, is translated to another address, or is that of the API server's Service"
	}
	return ""
}
