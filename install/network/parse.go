// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/render/inputs"
)

const mainTable = 254

// Parse reads an NMState document. The error is inputs.Faults with all that is wrong, each with line and advice.
func Parse(file string, text []byte) (*Config, error) {
	r := &reader{file: file, lines: map[string]int{}}
	c := &Config{}
	if n := r.document(text); n != nil {
		r.mapping("", n, fields{
			"interfaces": func(at string, n *yaml.Node) {
				r.list(at, n, func(at string, n *yaml.Node) { c.interfaces = append(c.interfaces, r.iface(at, n)) })
			},
			"routes": func(at string, n *yaml.Node) {
				r.mapping(at, n, fields{"config": func(at string, n *yaml.Node) {
					r.list(at, n, func(at string, n *yaml.Node) { c.routes = append(c.routes, r.route(at, n)) })
				}})
			},
			"dns-resolver": func(at string, n *yaml.Node) {
				r.mapping(at, n, fields{"config": func(at string, n *yaml.Node) { r.resolver(at, n, c) }})
			},
		})
	}
	if len(r.faults) == 0 {
		// Only for valid fields: otherwise the errors would follow from those above.
		r.connect(c)
	}
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b inputs.Fault) int { return cmp.Compare(a.Line, b.Line) })
		return nil, r.faults
	}
	return c, nil
}

func (r *reader) iface(at string, n *yaml.Node) *iface {
	i := &iface{at: at, tag: -1}
	identifier, state, hardware := "name", "up", ""
	known := fields{
		"name": r.deviceName(&i.name), "type": r.oneOf(&i.kind, ethernet, bonded, tagged), "state": r.oneOf(&state, "up"),
		"identifier": r.oneOf(&identifier, "name", "mac-address"), "mac-address": r.hardware(&hardware), "mtu": r.number(&i.mtu, 68, 65535),
		families[four]:     func(at string, n *yaml.Node) { i.ip[four] = r.ip(at, n, four) },
		families[six]:      func(at string, n *yaml.Node) { i.ip[six] = r.ip(at, n, six) },
		"link-aggregation": func(at string, n *yaml.Node) { r.bond(at, n, i) },
		"vlan":             func(at string, n *yaml.Node) { r.vlan(at, n, i) },
	}
	before := len(r.faults)
	r.mapping(at, n, known)
	if len(r.faults) > before {
		return i
	}
	i.address = hardware
	if identifier == "mac-address" {
		i.identifier, i.address = hardware, ""
	}
	_, hasBond := r.lines[at+".link-aggregation"]
	_, hasVLAN := r.lines[at+".vlan"]
	switch {
	case i.name == "":
		r.fault(inputs.ErrMissing, at+".name", "set a name", "the interface has no name")
	case i.kind == "":
		r.fault(inputs.ErrMissing, at+".type", "write ethernet, bond or vlan", "the interface has no type")
	case identifier == "mac-address" && hardware == "":
		r.fault(inputs.ErrMissing, at+".mac-address", "set it", "the address that identifies the interface is missing")
	case identifier == "mac-address" && i.kind != ethernet:
		r.fault(inputs.ErrInvalid, at+".identifier", "remove it", "a %s has no hardware to identify", i.kind)
	case hasBond != (i.kind == bonded):
		r.fault(inputs.ErrInvalid, at+".link-aggregation", "it is for interfaces of type bond only", "the type is %s", i.kind)
	case hasVLAN != (i.kind == tagged):
		r.fault(inputs.ErrInvalid, at+".vlan", "it is for interfaces of type vlan only", "the type is %s", i.kind)
	case i.mtu != 0 && i.mtu < 1280 && i.ip[six].enabled:
		r.fault(inputs.ErrInvalid, at+".mtu", "write 1280 or more", "%d is too small for IPv6", i.mtu)
	}
	return i
}

func (r *reader) ip(at string, n *yaml.Node, version int) ip {
	i, dns, gateway, routes := ip{}, true, true, true
	known := fields{
		"enabled": r.boolean(&i.enabled), "dhcp": r.boolean(&i.dhcp),
		"auto-dns": r.boolean(&dns), "auto-gateway": r.boolean(&gateway), "auto-routes": r.boolean(&routes),
		"auto-route-metric": r.optionalNumber(&i.metric, 0, 1<<31-1), "auto-table-id": r.optionalNumber(&i.table, 1, 1<<31-1),
		"address": func(at string, n *yaml.Node) {
			r.list(at, n, func(at string, n *yaml.Node) { i.addresses = append(i.addresses, r.prefix(at, n, version)) })
		},
	}
	if version == six {
		known["autoconf"] = r.boolean(&i.autoconf)
	}
	before := len(r.faults)
	r.mapping(at, n, known)
	if len(r.faults) > before {
		return i
	}
	i.noDNS, i.noGateway, i.noRoutes = !dns, !gateway, !routes
	if _, set := r.lines[at+".enabled"]; !set {
		r.fault(inputs.ErrMissing, at+".enabled", "write true or false", "whether the interface has %s is missing", families[version])
		return i
	}
	switch {
	case !i.enabled && (i.automatic() || len(i.addresses) > 0):
		r.fault(inputs.ErrInvalid, at+".enabled", "write enabled: true, or remove dhcp, autoconf and address", "there are addresses, but it is not enabled")
	case i.automatic() && len(i.addresses) > 0:
		r.fault(inputs.ErrInvalid, at+".address", "keep the addresses, or dhcp and autoconf", "there are static and automatic addresses")
	case i.autoconf && !i.dhcp:
		r.fault(inputs.ErrUnsupported, at+".autoconf", "write dhcp: true too: DHCP is only used if router advertisements request it",
			"NMState does not have autoconf without DHCP")
	case version == four && i.enabled && !i.dhcp && len(i.addresses) == 0:
		r.fault(inputs.ErrMissing, at+".address", "set addresses, or write dhcp: true or enabled: false", "enabled without an address")
	case !i.automatic():
		for _, name := range []string{"auto-dns", "auto-gateway", "auto-routes", "auto-route-metric", "auto-table-id"} {
			if _, set := r.lines[at+"."+name]; set {
				r.fault(inputs.ErrIgnored, at+"."+name, "remove it", "it has no effect without dhcp")
			}
		}
	}
	return i
}

func (r *reader) prefix(at string, n *yaml.Node, version int) netip.Prefix {
	var address netip.Addr
	bits := -1
	most := 32
	if version == six {
		most = 128
	}
	before := len(r.faults)
	r.mapping(at, n, fields{"ip": r.addr(&address), "prefix-length": r.number(&bits, 1, most)})
	p := netip.PrefixFrom(address, bits)
	switch {
	case len(r.faults) > before:
	case !address.IsValid():
		r.fault(inputs.ErrMissing, at+".ip", "set it", "the address is missing")
	case family(address) != version:
		r.fault(inputs.ErrInvalid, at+".ip", "move it to the other family", "%s is not an address of %s", address, families[version])
	case address.IsLoopback():
		r.fault(inputs.ErrInvalid, at+".ip", "set an address that other machines reach", "%s is a loopback address", address)
	case bits < 0:
		r.fault(inputs.ErrMissing, at+".prefix-length", "set it, such as 24", "the length of the prefix is missing")
	case isNetworkOrBroadcast(p, address):
		r.fault(inputs.ErrInvalid, at+".ip", "set an address between the first and the last", "%s is the network's own address, or its broadcast address", p)
	}
	return p
}

// isNetworkOrBroadcast reports whether an address of IPv4 is the first or the last of its network, which no host has.
func isNetworkOrBroadcast(p netip.Prefix, address netip.Addr) bool {
	return address.Is4() && p.Bits() < 31 && (p.Masked().Addr() == address || last(p) == address)
}

func last(p netip.Prefix) netip.Addr {
	a := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(a)
}

func (r *reader) vlan(at string, n *yaml.Node, i *iface) {
	protocol := ""
	before := len(r.faults)
	r.mapping(at, n, fields{"base-iface": r.deviceName(&i.base), "id": r.number(&i.tag, 1, 4094), "protocol": r.oneOf(&protocol, "802.1q")})
	switch {
	case len(r.faults) > before:
	case i.base == "":
		r.fault(inputs.ErrMissing, at+".base-iface", "set it", "the base interface of the VLAN is missing")
	case i.tag < 0:
		r.fault(inputs.ErrMissing, at+".id", "write the VLAN's number", "the number is missing")
	}
}

func (r *reader) route(at string, n *yaml.Node) route {
	v := route{at: at, table: mainTable}
	destination := ""
	before := len(r.faults)
	r.mapping(at, n, fields{
		"destination": r.text(&destination), "next-hop-address": r.addr(&v.gateway), "next-hop-interface": r.deviceName(&v.device),
		"metric": r.optionalNumber(&v.metric, 0, 1<<31-1), "table-id": r.number(&v.table, 1, 1<<31-1),
	})
	if len(r.faults) > before {
		return v
	}
	p, err := netip.ParsePrefix(destination)
	v.destination = p
	switch {
	case err != nil:
		r.fault(inputs.ErrInvalid, at+".destination", "write a network, such as 0.0.0.0/0", "%q is not a network", destination)
	case p.Masked() != p:
		r.fault(inputs.ErrInvalid, at+".destination", "write "+p.Masked().String(), "%q has bits set in the part of the hosts", destination)
	case v.device == "":
		r.fault(inputs.ErrMissing, at+".next-hop-interface", "set it", "the interface is missing")
	case v.gateway.IsValid() && family(v.gateway) != family(p.Addr()):
		r.fault(inputs.ErrInvalid, at+".next-hop-address", "use an address of the destination's family", "%s is of another family than %s", v.gateway, p)
	}
	return v
}

func (r *reader) resolver(at string, n *yaml.Node, c *Config) {
	r.mapping(at, n, fields{
		"server": func(at string, n *yaml.Node) {
			r.list(at, n, func(at string, n *yaml.Node) {
				var server netip.Addr
				r.addr(&server)(at, n)
				c.servers = append(c.servers, server)
			})
		},
		"search": func(at string, n *yaml.Node) {
			r.list(at, n, func(at string, n *yaml.Node) {
				domain := strings.ToLower(strings.TrimSuffix(n.Value, "."))
				if wrong := validation.IsDNS1123Subdomain(domain); len(wrong) > 0 {
					r.fault(inputs.ErrInvalid, at, "write a domain, such as example.com", "%q is not a domain", n.Value)
				}
				c.search = append(c.search, domain)
			})
		},
	})
}

// connect validates references: ports of bonds, base interfaces of VLANs, interfaces of routes, and interfaces for DNS
// servers.
func (r *reader) connect(c *Config) {
	r.names(c)
	if len(r.faults) > 0 {
		return
	}
	for _, i := range slices.Clone(c.interfaces) {
		switch i.kind {
		case bonded:
			r.ports(c, i)
		case tagged:
			r.base(c, i)
		}
	}
	for _, i := range c.interfaces {
		if i.controller != "" && (i.ip[four].enabled || i.ip[six].enabled) {
			r.fault(inputs.ErrInvalid, i.at, "set the addresses on the bond", "%s is a port of %s, and has addresses of its own", i.name, i.controller)
		}
	}
	for _, v := range c.routes {
		r.attach(c, v)
	}
	r.resolve(c)
}

func (r *reader) names(c *Config) {
	names, addresses, found := map[string]string{}, map[netip.Addr]string{}, map[string]string{}
	reachable := false
	for _, i := range c.interfaces {
		if first, twice := names[i.name]; twice {
			r.fault(inputs.ErrDuplicate, i.at+".name", "keep one", "%q is the name of %s too", i.name, first)
		}
		names[i.name] = i.at
		if first, twice := found[i.identifier]; twice && i.identifier != "" {
			r.fault(inputs.ErrDuplicate, i.at+".mac-address", "keep one", "%s is that of %s too", i.identifier, first)
		}
		found[i.identifier] = i.at
		for version := range i.ip {
			reachable = reachable || i.ip[version].enabled
			for n, p := range i.ip[version].addresses {
				at := fmt.Sprintf("%s.%s.address[%d].ip", i.at, families[version], n)
				if first, twice := addresses[p.Addr()]; twice {
					r.fault(inputs.ErrDuplicate, at, "keep one", "%s is at %s too", p.Addr(), first)
				}
				addresses[p.Addr()] = at
			}
		}
	}
	if !reachable {
		r.fault(inputs.ErrMissing, "interfaces", "set addresses or DHCP on one of them", "no interface has an address")
	}
}

// named returns the interface with a name. If the document has none, it adds an ethernet interface without addresses,
// unless others are identified by their hardware: then one device could get two profiles.
func (r *reader) named(c *Config, at, name string) *iface {
	if i := c.find(name); i != nil {
		return i
	}
	if slices.ContainsFunc(c.interfaces, func(i *iface) bool { return i.identifier != "" }) {
		r.fault(inputs.ErrMissing, at, "add it to interfaces, or use a name from there",
			"%q is not in interfaces, and could be the kernel's name of one that is identified by its hardware address", name)
	}
	i := &iface{name: name, kind: ethernet}
	c.interfaces = append(c.interfaces, i)
	return i
}

func (r *reader) base(c *Config, i *iface) {
	at := i.at + ".vlan"
	base := r.named(c, at+".base-iface", i.base)
	mtu := base.mtu
	if mtu == 0 {
		mtu = 1500
	}
	switch {
	case base.kind == tagged:
		r.fault(inputs.ErrUnsupported, at+".base-iface", "use an ethernet interface or a bond", "%s is a VLAN itself", base.name)
	case i.mtu > mtu:
		r.fault(inputs.ErrInvalid, i.at+".mtu", fmt.Sprintf("increase the MTU of %s", base.name), "%d is more than the %d of %s below it", i.mtu, mtu, base.name)
	}
	for _, other := range c.interfaces {
		if other.kind == tagged && other != i && other.base == i.base && other.tag == i.tag && other.at < i.at {
			r.fault(inputs.ErrDuplicate, at+".id", "keep one", "%s has VLAN %d of %s too", other.name, i.tag, i.base)
		}
	}
}

func (r *reader) attach(c *Config, v route) {
	i, version := c.find(v.device), family(v.destination.Addr())
	if i == nil {
		r.fault(inputs.ErrMissing, v.at+".next-hop-interface", "use one of interfaces", "there is no interface %q", v.device)
		return
	}
	p := &i.ip[version]
	reached := func(other route) bool {
		return other.device == v.device && !other.gateway.IsValid() && other.destination.Contains(v.gateway)
	}
	at := v.at + ".next-hop-address"
	switch {
	case !p.enabled:
		r.fault(inputs.ErrInvalid, v.at+".next-hop-interface", "enable it there, or use another interface", "%s has no %s", v.device, families[version])
	case slices.ContainsFunc(c.Addresses(), func(a netip.Prefix) bool { return a.Addr() == v.gateway }):
		r.fault(inputs.ErrInvalid, at, "set the router's address", "%s is an address of this machine", v.gateway)
	case slices.ContainsFunc(p.addresses, func(a netip.Prefix) bool { return a.Contains(v.gateway) && isNetworkOrBroadcast(a, v.gateway) }):
		r.fault(inputs.ErrInvalid, at, "set the router's address", "%s is the network's own address, or its broadcast address", v.gateway)
	case v.gateway.IsValid() && !p.automatic() && !v.gateway.IsLinkLocalUnicast() && !slices.ContainsFunc(c.routes, reached) &&
		!slices.ContainsFunc(p.addresses, func(a netip.Prefix) bool { return a.Contains(v.gateway) }):
		r.fault(inputs.ErrInvalid, at, "set an address in a network of the interface", "%s is in no network of %s", v.gateway, v.device)
	default:
		p.routes = append(p.routes, v)
	}
}

// resolve adds each DNS server to the interface with the default route of its family, as far as that is known.
func (r *reader) resolve(c *Config) {
	through := [2]*ip{}
	for version := range through {
		best := -1
		for _, i := range c.interfaces {
			p, rank := &i.ip[version], 0
			switch {
			case !p.enabled:
				continue
			case slices.ContainsFunc(p.routes, func(v route) bool { return v.destination.Bits() == 0 && v.table == mainTable }):
				rank = 2
			case p.automatic() && !p.noGateway:
				rank = 1
			}
			if rank > best {
				through[version], best = p, rank
			}
		}
	}
	for n, server := range c.servers {
		p := through[family(server)]
		if p == nil {
			r.fault(inputs.ErrInvalid, fmt.Sprintf("dns-resolver.config.server[%d]", n), "remove it, or enable "+families[family(server)],
				"no interface reaches %s", server)
			continue
		}
		p.nameservers = append(p.nameservers, server)
	}
	if len(c.search) == 0 {
		return
	}
	first := cmp.Or(through[four], through[six])
	for _, p := range through {
		if p != nil && (p == first || len(p.nameservers) > 0) {
			p.search = c.search
		}
	}
}
