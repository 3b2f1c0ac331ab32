package inventory

import (
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// numeric is a name that no resolver takes for one: it is an address, or a mistyped one.
var numeric = regexp.MustCompile(`(^|\.)[0-9]+$`)

// HostProblem says why a name is not the name of one host, as a kubelet writes it; empty when it is.
func HostProblem(name string) string {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard"
	case numeric.MatchString(name):
		return "is neither an IP address nor the name of a host"
	case reserved(name):
		return "is a name by which every pod reaches something else; no node may serve by it"
	}
	return ""
}

// reserved are names that mean the API server, a Service, or whoever asks.
func reserved(name string) bool {
	switch name {
	case "localhost", "kubernetes", "kubernetes.default", "openshift", "openshift.default":
		return true
	}
	return strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".svc.cluster.local")
}

// AddressProblem says why an address is not that of one host; empty when it is.
func AddressProblem(address netip.Addr) string {
	if !address.IsGlobalUnicast() || address.Is4In6() || address.Zone() != "" {
		return "is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone"
	}
	return ""
}
