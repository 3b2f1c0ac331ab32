// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"net/netip"
	"testing"
)

// Addresses that no host has, or that lead elsewhere, are refused, also those next to the limits.
func TestReservedAddresses(t *testing.T) {
	for text, reserved := range map[string]bool{
		"240.0.0.1": true, "255.255.255.254": true, "0.0.0.7": true, "64:ff9b::c000:20a": true, "64:ff9b:1::1": true, "172.30.0.1": true, "10.96.0.1": true,
		"223.255.255.254": false, "1.0.0.1": false, "64:ff9c::1": false, "172.30.0.2": false, "192.0.2.10": false, "2001:db8::10": false, "100.64.0.9": false,
	} {
		address := netip.MustParseAddr(text)
		if got := InvalidAddress(address) != ""; got != reserved {
			t.Errorf("%s: %t (%s)", text, got, InvalidAddress(address))
		}
	}
}

// Reserved names are refused, similar names are not.
func TestReservedNames(t *testing.T) {
	for name, reserved := range map[string]bool{
		"localhost": true, "a.localhost": true, "kubernetes": true, "kubernetes.default": true, "openshift": true, "openshift.default": true,
		"kubernetes.default.svc": true, "a.svc": true, "a.b.svc.cluster.local": true,
		"foo.bar.svc.example.org": true, "api.sno.example.com": true, "api-int.sno.example.com": true, "localhost.localdomain": true, "localhost6.localdomain6": true,
		"apiary.example.com": false, "api-0.example.com": false, "rack.svc.example.com": false, "localhost.example.com": false,
		"localhost-0": false, "kubernetes-0": false, "openshift.example.com": false, "svc": false, "a.svc.example.com": false, "default": false,
	} {
		if got := InvalidHost(name) != ""; got != reserved {
			t.Errorf("%s: %t (%s)", name, got, InvalidHost(name))
		}
	}
}
