// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
	"github.com/solonode/sno/render/inputs"
)

// The documents of NMState, as far as they are accepted. NMState reads numbers and booleans in quotes too, so these
// fields have any type.
type (
	state struct {
		Interfaces []stateInterface `json:"interfaces"`
		Routes     struct {
			Config []stateRoute `json:"config"`
		} `json:"routes"`
		Resolver struct {
			Config struct {
				Server []string `json:"server"`
				Search []string `json:"search"`
			} `json:"config"`
		} `json:"dns-resolver"`
	}
	stateInterface struct {
		Name       string     `json:"name"`
		Type       string     `json:"type"`
		State      string     `json:"state"`
		Identifier string     `json:"identifier"`
		MACAddress string     `json:"mac-address"`
		MTU        any        `json:"mtu"`
		IPv4       *stateIP   `json:"ipv4"`
		IPv6       *stateIPv6 `json:"ipv6"`
		Bond       *stateBond `json:"link-aggregation"`
		VLAN       *stateVLAN `json:"vlan"`
	}
	stateIP struct {
		Enabled     any `json:"enabled"`
		DHCP        any `json:"dhcp"`
		AutoDNS     any `json:"auto-dns"`
		AutoGateway any `json:"auto-gateway"`
		AutoRoutes  any `json:"auto-routes"`
		AutoMetric  any `json:"auto-route-metric"`
		AutoTable   any `json:"auto-table-id"`
		Address     []struct {
			IP     string `json:"ip"`
			Length any    `json:"prefix-length"`
		} `json:"address"`
	}
	stateIPv6 struct {
		stateIP  `json:",inline"`
		Autoconf any `json:"autoconf"`
	}
	stateBond struct {
		Mode    any            `json:"mode"`
		Options map[string]any `json:"options"`
		Port    []string       `json:"port"`
		Ports   []string       `json:"ports"`
	}
	stateVLAN struct {
		Base     string `json:"base-iface"`
		ID       any    `json:"id"`
		Protocol string `json:"protocol"`
	}
	stateRoute struct {
		Destination string `json:"destination"`
		Gateway     string `json:"next-hop-address"`
		Device      string `json:"next-hop-interface"`
		Metric      any    `json:"metric"`
		Table       any    `json:"table-id"`
	}
)

const mainTable = 254

// Parse reads an NMState document. The error is document.Faults with all that is wrong.
func Parse(file string, text []byte) (*Config, error) {
	d, faults := document.One(file, text)
	if len(faults) > 0 {
		return nil, faults
	}
	var s state
	r := &reader{document: d}
	r.errs = d.Decode(&s)
	c := &Config{}
	// Values of a wrong type are zero: what follows from them is no fault of its own.
	readable := true
	for _, err := range r.errs {
		if err.Type == field.ErrorTypeForbidden {
			err.Detail = "unknown or unsupported field; docs/network.md has the supported ones"
		} else {
			readable = false
		}
	}
	if readable {
		r.state(c, s)
	}
	if len(r.errs) == 0 {
		// Only for valid fields: otherwise the errors would follow from those above.
		r.connect(c)
	}
	if len(r.errs) > 0 {
		faults = d.Faults(r.errs)
		faults.Sort()
		return nil, faults
	}
	return c, nil
}

type reader struct {
	document *document.Document
	errs     field.ErrorList
}

func (r *reader) add(err *field.Error) { r.errs = append(r.errs, err) }

func (r *reader) invalid(at *field.Path, value any, detail string) {
	r.add(field.Invalid(at, value, detail))
}

func (r *reader) required(at *field.Path, detail string) { r.add(field.Required(at, detail)) }

func (r *reader) has(at *field.Path) bool { return !r.document.Empty(at.String()) }

// good reports whether no errors were found by the given steps.
func (r *reader) good(steps func()) bool {
	before := len(r.errs)
	steps()
	return len(r.errs) == before
}

func (r *reader) oneOf(at *field.Path, value string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		r.add(field.NotSupported(at, value, values))
	}
}

func (r *reader) boolean(at *field.Path, value any, otherwise bool) bool {
	switch strings.ToLower(text(value)) {
	case "":
		return otherwise
	case "true", "yes", "on", "y", "1":
		return true
	case "false", "no", "off", "n", "0":
		return false
	}
	r.invalid(at, text(value), "write true or false")
	return otherwise
}

// number returns nil for a missing or wrong number.
func (r *reader) number(at *field.Path, value any, least, most int) *int {
	if value == nil {
		return nil
	}
	number, err := strconv.Atoi(text(value))
	if err != nil || number < least || number > most {
		r.invalid(at, text(value), fmt.Sprintf("write a number from %d to %d", least, most))
		return nil
	}
	return &number
}

// text returns a value as it is written in the document.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// deviceName checks the name of an interface, which the kernel limits.
func (r *reader) deviceName(at *field.Path, name string) {
	if name != "" && (len(name) > 15 || name == "." || name == ".." || !plainName.MatchString(name)) {
		r.invalid(at, name, "write the name of an interface: at most 15 letters, digits, dots, dashes and underscores")
	}
}

// hardware returns a hardware address of a machine, in upper case, or "".
func hardware(value string) string {
	address, err := net.ParseMAC(value)
	if err != nil || len(address) != 6 || address[0]&1 != 0 || bytes.Equal(address, make([]byte, 6)) {
		return ""
	}
	return strings.ToUpper(address.String())
}

func (r *reader) address(at *field.Path, value string) netip.Addr {
	if value == "" {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(value)
	if err != nil || address.Zone() != "" || address.Is4In6() || address.IsUnspecified() || address.IsMulticast() {
		r.invalid(at, value, "write the address of a machine, such as 192.0.2.7 or 2001:db8::7")
		return netip.Addr{}
	}
	return address
}

func (r *reader) state(c *Config, s state) {
	for n, i := range s.Interfaces {
		c.interfaces = append(c.interfaces, r.iface(document.Path("interfaces[%d]", n), i))
	}
	for n, v := range s.Routes.Config {
		c.routes = append(c.routes, r.route(document.Path("routes.config[%d]", n), v))
	}
	for n, server := range s.Resolver.Config.Server {
		at := document.Path("dns-resolver.config.server[%d]", n)
		address := r.address(at, server)
		if server == "" {
			r.required(at, "write an address, or remove it")
		}
		c.servers = append(c.servers, address)
	}
	for n, domain := range s.Resolver.Config.Search {
		plain := strings.ToLower(strings.TrimSuffix(domain, "."))
		if len(validation.IsDNS1123Subdomain(plain)) > 0 {
			r.invalid(document.Path("dns-resolver.config.search[%d]", n), domain, "write a domain, such as example.com")
		}
		c.search = append(c.search, plain)
	}
}

func (r *reader) iface(at *field.Path, s stateInterface) *iface {
	i := &iface{at: at, name: s.Name, kind: s.Type, tag: -1}
	good := r.good(func() {
		r.deviceName(at.Child("name"), s.Name)
		r.oneOf(at.Child("type"), s.Type, ethernet, bonded, tagged)
		r.oneOf(at.Child("state"), s.State, "up")
		r.oneOf(at.Child("identifier"), s.Identifier, "name", "mac-address")
		if i.address = hardware(s.MACAddress); i.address == "" && s.MACAddress != "" {
			r.invalid(at.Child("mac-address"), s.MACAddress, "write the hardware address of a machine, such as 52:54:00:12:34:56")
		}
		if mtu := r.number(at.Child("mtu"), s.MTU, 68, 65535); mtu != nil {
			i.mtu = *mtu
		}
		if s.IPv4 != nil {
			i.ip[four] = r.ip(at.Child(families[four]), *s.IPv4, nil, four)
		}
		if s.IPv6 != nil {
			i.ip[six] = r.ip(at.Child(families[six]), s.IPv6.stateIP, s.IPv6.Autoconf, six)
		}
		if s.Bond != nil {
			r.bond(at.Child("link-aggregation"), *s.Bond, i)
		}
		if s.VLAN != nil {
			r.vlan(at.Child("vlan"), *s.VLAN, i)
		}
	})
	if !good {
		return i
	}
	byHardware := s.Identifier == "mac-address"
	switch {
	case s.Name == "":
		r.required(at.Child("name"), "set a name")
	case s.Type == "":
		r.required(at.Child("type"), "write ethernet, bond or vlan")
	case byHardware && i.address == "":
		r.required(at.Child("mac-address"), "it identifies the interface; set it")
	case byHardware && s.Type != ethernet:
		r.invalid(at.Child("identifier"), s.Identifier, "a "+s.Type+" has no hardware to identify; remove it")
	case s.Type == bonded && s.Bond == nil:
		r.required(at.Child("link-aggregation"), "set mode and port of the bond")
	case s.Type != bonded && s.Bond != nil:
		r.add(field.Forbidden(at.Child("link-aggregation"), "it is for type bond, and the type is "+s.Type))
	case s.Type == tagged && s.VLAN == nil:
		r.required(at.Child("vlan"), "set base-iface and id of the VLAN")
	case s.Type != tagged && s.VLAN != nil:
		r.add(field.Forbidden(at.Child("vlan"), "it is for type vlan, and the type is "+s.Type))
	case i.mtu != 0 && i.mtu < 1280 && i.ip[six].enabled:
		r.invalid(at.Child("mtu"), int64(i.mtu), "it is too small for IPv6; write 1280 or more")
	}
	if byHardware {
		i.identifier, i.address = i.address, ""
	}
	return i
}

func (r *reader) ip(at *field.Path, s stateIP, autoconf any, version int) ip {
	var i ip
	good := r.good(func() {
		i = ip{
			enabled: r.boolean(at.Child("enabled"), s.Enabled, false), dhcp: r.boolean(at.Child("dhcp"), s.DHCP, false),
			autoconf:  r.boolean(at.Child("autoconf"), autoconf, false),
			noDNS:     !r.boolean(at.Child("auto-dns"), s.AutoDNS, true),
			noGateway: !r.boolean(at.Child("auto-gateway"), s.AutoGateway, true),
			noRoutes:  !r.boolean(at.Child("auto-routes"), s.AutoRoutes, true),
			metric:    r.number(at.Child("auto-route-metric"), s.AutoMetric, 0, 1<<31-1),
			table:     r.number(at.Child("auto-table-id"), s.AutoTable, 1, 1<<31-1),
		}
		for n, a := range s.Address {
			i.addresses = append(i.addresses, r.prefix(at.Child("address").Index(n), a.IP, a.Length, version))
		}
	})
	switch {
	case !good:
	case s.Enabled == nil:
		r.required(at.Child("enabled"), "write true or false")
	case !i.enabled && (i.automatic() || len(i.addresses) > 0):
		r.invalid(at.Child("enabled"), false, "there are addresses; write enabled: true, or remove dhcp, autoconf and address")
	case i.automatic() && len(i.addresses) > 0:
		r.add(field.Forbidden(at.Child("address"), "there are static and automatic addresses; keep the addresses, or dhcp and autoconf"))
	case i.autoconf && !i.dhcp:
		r.invalid(at.Child("autoconf"), true, "NMState does not have it without DHCP; write dhcp: true too: DHCP is only used if router advertisements request it")
	case version == four && i.enabled && !i.dhcp && len(i.addresses) == 0:
		r.required(at.Child("address"), "set addresses, or write dhcp: true or enabled: false")
	case !i.automatic():
		for _, name := range []string{"auto-dns", "auto-gateway", "auto-routes", "auto-route-metric", "auto-table-id"} {
			if r.has(at.Child(name)) {
				r.add(field.Forbidden(at.Child(name), "it has no effect without dhcp; remove it"))
			}
		}
	}
	return i
}

func (r *reader) prefix(at *field.Path, text string, length any, version int) netip.Prefix {
	most := 32
	if version == six {
		most = 128
	}
	var address netip.Addr
	var bits *int
	good := r.good(func() {
		address, bits = r.address(at.Child("ip"), text), r.number(at.Child("prefix-length"), length, 1, most)
	})
	switch {
	case !good:
		return netip.Prefix{}
	case !address.IsValid():
		r.required(at.Child("ip"), "set it")
		return netip.Prefix{}
	case bits == nil:
		r.required(at.Child("prefix-length"), "set it, such as 24")
		return netip.Prefix{}
	}
	p := netip.PrefixFrom(address, *bits)
	switch {
	case family(address) != version:
		r.invalid(at.Child("ip"), text, "it is not an address of "+families[version]+"; move it to the other family")
	case address.IsLoopback():
		r.invalid(at.Child("ip"), text, "it is a loopback address; set one that other machines reach")
	case isNetworkOrBroadcast(p, address):
		r.invalid(at.Child("ip"), p.String(), "it is the network's own address, or its broadcast address; set one between them")
	}
	return p
}

// isNetworkOrBroadcast reports whether an address of IPv4 is the first or the last of its network, which no host has.
func isNetworkOrBroadcast(p netip.Prefix, address netip.Addr) bool {
	return address.Is4() && p.Bits() < 31 && (p.Masked().Addr() == address || !p.Contains(address.Next()))
}

func (r *reader) vlan(at *field.Path, s stateVLAN, i *iface) {
	good := r.good(func() {
		r.deviceName(at.Child("base-iface"), s.Base)
		r.oneOf(at.Child("protocol"), s.Protocol, "802.1q")
		if id := r.number(at.Child("id"), s.ID, 1, 4094); id != nil {
			i.base, i.tag = s.Base, *id
		}
	})
	switch {
	case !good:
	case s.Base == "":
		r.required(at.Child("base-iface"), "set the interface below the VLAN")
	case s.ID == nil:
		r.required(at.Child("id"), "write the VLAN's number")
	}
}

func (r *reader) route(at *field.Path, s stateRoute) route {
	v := route{at: at, device: s.Device, table: mainTable}
	good := r.good(func() {
		v.gateway = r.address(at.Child("next-hop-address"), s.Gateway)
		r.deviceName(at.Child("next-hop-interface"), s.Device)
		v.metric = r.number(at.Child("metric"), s.Metric, 0, 1<<31-1)
		if table := r.number(at.Child("table-id"), s.Table, 1, 1<<31-1); table != nil {
			v.table = *table
		}
		p, err := inputs.ParseNetwork(at.Child("destination"), s.Destination)
		if v.destination = p; err != nil {
			r.add(err)
		}
	})
	switch {
	case !good:
	case v.device == "":
		r.required(at.Child("next-hop-interface"), "set the interface")
	case v.gateway.IsValid() && family(v.gateway) != family(v.destination.Addr()):
		r.invalid(at.Child("next-hop-address"), s.Gateway, fmt.Sprintf("it is of another family than %s; use one of the destination's family", v.destination))
	}
	return v
}

// connect validates references: ports of bonds, base interfaces of VLANs, interfaces of routes, and interfaces for DNS
// servers.
func (r *reader) connect(c *Config) {
	r.names(c)
	if len(r.errs) > 0 {
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
			r.invalid(i.at, i.name, "it is a port of "+i.controller+", and has addresses of its own; set the addresses on the bond")
		}
	}
	for _, v := range c.routes {
		r.attach(c, v)
	}
	r.resolve(c)
}

func (r *reader) names(c *Config) {
	// once reports a value that is at another place too.
	seen := map[string]*field.Path{}
	once := func(at *field.Path, value string) {
		if first := seen[value]; first != nil {
			r.add(&field.Error{Type: field.ErrorTypeDuplicate, Field: at.String(), BadValue: value, Detail: fmt.Sprintf("it is at %s too; keep one", first)})
		}
		seen[value] = at
	}
	reachable := false
	for _, i := range c.interfaces {
		once(i.at.Child("name"), i.name)
		if i.identifier != "" {
			once(i.at.Child("mac-address"), i.identifier)
		}
		for version := range i.ip {
			reachable = reachable || i.ip[version].enabled
			for n, p := range i.ip[version].addresses {
				once(i.at.Child(families[version], "address").Index(n).Child("ip"), p.Addr().String())
			}
		}
	}
	if !reachable {
		r.required(field.NewPath("interfaces"), "no interface has an address; set addresses or DHCP on one of them")
	}
}

// named returns the interface with a name. If the document has none, it adds an ethernet interface without addresses,
// unless others are identified by their hardware: then one device could get two profiles.
func (r *reader) named(c *Config, at *field.Path, name string) *iface {
	if i := c.find(name); i != nil {
		return i
	}
	if slices.ContainsFunc(c.interfaces, func(i *iface) bool { return i.identifier != "" }) {
		r.add(&field.Error{Type: field.ErrorTypeNotFound, Field: at.String(), BadValue: name, Detail: "it is not in interfaces, and could be the kernel's name of " +
			"one that is identified by its hardware address; add it to interfaces, or use a name from there"})
	}
	i := &iface{name: name, kind: ethernet}
	c.interfaces = append(c.interfaces, i)
	return i
}

func (r *reader) base(c *Config, i *iface) {
	at := i.at.Child("vlan")
	base := r.named(c, at.Child("base-iface"), i.base)
	mtu := cmp.Or(base.mtu, 1500)
	switch {
	case base.kind == tagged:
		r.invalid(at.Child("base-iface"), base.name, "it is a VLAN itself; use an ethernet interface or a bond")
	case i.mtu > mtu:
		r.invalid(i.at.Child("mtu"), int64(i.mtu), fmt.Sprintf("it is more than the %d of %s below it; increase that MTU", mtu, base.name))
	}
	for _, other := range c.interfaces {
		if other == i {
			break
		}
		if other.kind == tagged && other.base == i.base && other.tag == i.tag {
			r.add(&field.Error{Type: field.ErrorTypeDuplicate, Field: at.Child("id").String(), BadValue: int64(i.tag),
				Detail: fmt.Sprintf("%s has this VLAN of %s too; keep one", other.name, i.base)})
		}
	}
}

func (r *reader) attach(c *Config, v route) {
	i, version := c.find(v.device), family(v.destination.Addr())
	if i == nil {
		r.add(&field.Error{Type: field.ErrorTypeNotFound, Field: v.at.Child("next-hop-interface").String(), BadValue: v.device, Detail: "use one of interfaces"})
		return
	}
	p := &i.ip[version]
	reached := func(other route) bool {
		return other.device == v.device && !other.gateway.IsValid() && other.destination.Contains(v.gateway)
	}
	gateway := func(problem string) { r.invalid(v.at.Child("next-hop-address"), v.gateway.String(), problem) }
	switch {
	case !p.enabled:
		r.invalid(v.at.Child("next-hop-interface"), v.device, "it has no "+families[version]+"; enable it there, or use another interface")
	case slices.ContainsFunc(c.Addresses(), func(a netip.Prefix) bool { return a.Addr() == v.gateway }):
		gateway("it is an address of this machine; set the router's address")
	case slices.ContainsFunc(p.addresses, func(a netip.Prefix) bool { return a.Contains(v.gateway) && isNetworkOrBroadcast(a, v.gateway) }):
		gateway("it is the network's own address, or its broadcast address; set the router's address")
	case v.gateway.IsValid() && !p.automatic() && !v.gateway.IsLinkLocalUnicast() && !slices.ContainsFunc(c.routes, reached) &&
		!slices.ContainsFunc(p.addresses, func(a netip.Prefix) bool { return a.Contains(v.gateway) }):
		gateway("it is in no network of " + v.device + "; set an address in one")
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
			r.invalid(document.Path("dns-resolver.config.server[%d]", n), server.String(), "no interface reaches it; remove it, or enable "+families[family(server)])
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
