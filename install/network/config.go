// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/files"
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

const folder = "etc/NetworkManager/system-connections/"

// Keyfiles returns a NetworkManager profile for each interface, the same for the same document. NetworkManager ignores
// files that others can read (U-INS-26).
func (c *Config) Keyfiles() []files.File {
	var all []files.File
	for _, i := range c.interfaces {
		all = append(all, files.File{Path: folder + i.name + ".nmconnection", Mode: 0o600, Content: c.keyfile(i)})
	}
	slices.SortFunc(all, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func identity(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://sno.solonode.github.io/install/network/"+name)).String()
}

type keyfile struct{ strings.Builder }

func (k *keyfile) section(name string) {
	if k.Len() > 0 {
		k.WriteString("\n")
	}
	fmt.Fprintf(k, "[%s]\n", name)
}

func (k *keyfile) set(key, value string) {
	if value != "" {
		fmt.Fprintf(k, "%s=%s\n", key, value)
	}
}

func (k *keyfile) when(condition bool, key, value string) {
	if condition {
		k.set(key, value)
	}
}

func (c *Config) keyfile(i *iface) []byte {
	k := &keyfile{}
	k.section("connection")
	k.set("id", i.name)
	k.set("uuid", identity(i.name))
	k.set("type", i.kind)
	k.when(i.identifier == "", "interface-name", i.name)
	// Higher than the live system's profile for any wired interface.
	k.set("autoconnect-priority", "1")
	k.when(i.kind == bonded, "autoconnect-slaves", "1")
	if i.controller != "" {
		k.set("master", i.controller)
		k.set("slave-type", bonded)
	}
	if i.identifier != "" || i.address != "" || i.mtu != 0 {
		k.section(ethernet)
		k.set("mac-address", i.identifier)
		k.set("cloned-mac-address", i.address)
		k.when(i.mtu != 0, "mtu", strconv.Itoa(i.mtu))
	}
	switch i.kind {
	case bonded:
		k.section(bonded)
		for _, name := range slices.Sorted(maps.Keys(i.options)) {
			k.set(name, i.options[name])
		}
	case tagged:
		k.section(tagged)
		k.set("flags", "1") // reorder headers, as the kernel does by default
		k.set("id", strconv.Itoa(i.tag))
		parent := i.base
		if base := c.find(i.base); base.identifier != "" {
			parent = identity(base.name) // the name is unknown
		}
		k.set("parent", parent)
	}
	if i.controller == "" {
		k.ip(i.ip[four], four)
		k.ip(i.ip[six], six)
	}
	return []byte(k.String())
}

func (k *keyfile) ip(i ip, version int) {
	k.section(families[version])
	switch {
	case !i.enabled:
		k.set("method", "disabled")
		return
	case i.autoconf, i.dhcp && version == four:
		k.set("method", "auto")
	case i.dhcp:
		k.set("method", "dhcp")
	case len(i.addresses) > 0:
		k.set("method", "manual")
	default:
		k.set("method", "link-local")
	}
	for n, p := range i.addresses {
		k.set(fmt.Sprintf("address%d", n+1), p.String())
	}
	k.when(version == six, "addr-gen-mode", "eui64")
	if i.automatic() {
		k.lease(i, version)
	}
	list := func(key string, values []string) {
		if len(values) > 0 {
			k.set(key, strings.Join(values, ";")+";")
		}
	}
	var servers []string
	for _, s := range i.nameservers {
		servers = append(servers, s.String())
	}
	list("dns", servers)
	list("dns-search", i.search)
	// Before the servers of DHCP, which have 100.
	k.when(len(servers) > 0, "dns-priority", "40")
	for n, v := range i.routes {
		k.set(fmt.Sprintf("route%d", n+1), v.String())
		k.set(fmt.Sprintf("route%d_options", n+1), fmt.Sprintf("table=%d", v.table))
	}
}

// lease sets the keys of automatic addresses. The installed system uses the same identifier as the live system, its
// hardware address, so that it gets the same address. Neither has a timeout.
func (k *keyfile) lease(i ip, version int) {
	const forever = "2147483647"
	k.set("dhcp-timeout", forever)
	if version == four {
		k.set("dhcp-client-id", "mac")
	} else {
		k.set("dhcp-duid", "ll")
		k.set("dhcp-iaid", "mac")
		k.set("ra-timeout", forever)
	}
	k.when(i.noDNS, "ignore-auto-dns", "true")
	k.when(i.noRoutes, "ignore-auto-routes", "true")
	k.when(i.noGateway, "never-default", "true")
	if i.metric != nil {
		k.set("route-metric", strconv.Itoa(*i.metric))
	}
	if i.table != nil {
		k.set("route-table", strconv.Itoa(*i.table))
	}
}

// String returns the route in the form of keyfiles: network, gateway, metric.
func (r route) String() string {
	text := r.destination.String()
	gateway := r.gateway
	if !gateway.IsValid() && r.metric != nil {
		gateway = netip.IPv4Unspecified()
		if family(r.destination.Addr()) == six {
			gateway = netip.IPv6Unspecified()
		}
	}
	if gateway.IsValid() {
		text += "," + gateway.String()
	}
	if r.metric != nil {
		text += "," + strconv.Itoa(*r.metric)
	}
	return text
}
