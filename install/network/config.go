package network

import (
	"net/netip"
	"slices"
)

// Config is how a machine is connected.
type Config struct {
	interfaces []*iface
	routes     []route
	servers    []netip.Addr
	search     []string
}

// The types of interfaces.
const (
	ethernet = "ethernet"
	bonded   = "bond"
	tagged   = "vlan"
)

type iface struct {
	at   string // the field, such as interfaces[0]; empty for one that only another one names
	name string
	kind string
	// identifier is the address by which the interface is found; empty where it is found by its name.
	identifier string
	// address is the hardware address that the interface gets.
	address string
	mtu     int
	ip      [2]ip // of IPv4 and of IPv6
	options map[string]string
	ports   []string
	base    string
	tag     int
	// controller is the bond that the interface is a port of.
	controller string
}

// ip is one family's part of an interface.
type ip struct {
	enabled, dhcp, autoconf    bool
	addresses                  []netip.Prefix
	noDNS, noGateway, noRoutes bool
	metric, table              *int
	nameservers                []netip.Addr
	search                     []string
	routes                     []route
}

// automatic reports whether addresses are from the network.
func (i ip) automatic() bool { return i.dhcp || i.autoconf }

type route struct {
	at          string
	destination netip.Prefix
	gateway     netip.Addr // may be missing
	device      string
	metric      *int
	table       int
}

// The families, as indices.
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

// Addresses returns the addresses that are always the machine's.
func (c *Config) Addresses() []netip.Prefix {
	var all []netip.Prefix
	for _, i := range c.interfaces {
		all = slices.Concat(all, i.ip[four].addresses, i.ip[six].addresses)
	}
	return all
}

func (c *Config) find(name string) *iface {
	for _, i := range c.interfaces {
		if i.name == name {
			return i
		}
	}
	return nil
}
