// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Config is the network configuration of a machine.
type Config struct {
	interfaces []*iface
	routes     []route
	servers    []netip.Addr
	search     []string
}

const (
	ethernet = "ethernet"
	bonded   = "bond"
	tagged   = "vlan"
)

type iface struct {
	at   *field.Path // such as interfaces[0]; nil for one that is only referred to
	name string
	kind string
	// identifier is the hardware address that identifies the interface; empty if its name does.
	identifier string
	// address is the hardware address to set.
	address    string
	mtu        int
	ip         [2]ip // of IPv4 and of IPv6
	options    map[string]string
	ports      []string
	base       string
	tag        int
	controller string
}

type ip struct {
	enabled, dhcp, autoconf    bool
	addresses                  []netip.Prefix
	noDNS, noGateway, noRoutes bool
	metric, table              *int
	nameservers                []netip.Addr
	search                     []string
	routes                     []route
}

func (i ip) automatic() bool { return i.dhcp || i.autoconf }

type route struct {
	at          *field.Path
	destination netip.Prefix
	gateway     netip.Addr // optional
	device      string
	metric      *int
	table       int
}

const (
	four = 0
	six  = 1
)

var families = [2]string{"ipv4", "ipv6"}

func family(a netip.Addr) int {
	if a.Is4() {
		return four
	}
	return six
}

// Addresses returns the static addresses.
func (c *Config) Addresses() []netip.Prefix {
	var all []netip.Prefix
	for _, i := range c.interfaces {
		all = slices.Concat(all, i.ip[four].addresses, i.ip[six].addresses)
	}
	return all
}

// Automatic reports whether an interface has automatic addresses of IPv4, and of IPv6.
func (c *Config) Automatic() (ipv4, ipv6 bool) {
	for _, i := range c.interfaces {
		ipv4, ipv6 = ipv4 || i.ip[four].automatic(), ipv6 || i.ip[six].automatic()
	}
	return ipv4, ipv6
}

func (c *Config) find(name string) *iface {
	for _, i := range c.interfaces {
		if i.name == name {
			return i
		}
	}
	return nil
}
