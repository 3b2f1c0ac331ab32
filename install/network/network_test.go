// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"errors"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"

	"github.com/solonode/sno/install/internal/fixture"
)

var update = flag.Bool("update", false, "write testdata")

func parsed(t *testing.T, name string) *Config {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	text := fixture.Must(os.ReadFile(path))
	return fixture.Must(Parse(path, text))
}

var documents = []string{"static", "dhcp", "bond"}

func TestKeyfiles(t *testing.T) {
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			folder, got := filepath.Join("testdata", name), map[string]string{}
			for _, f := range parsed(t, name).Keyfiles() {
				if f.Mode != 0o600 || filepath.Dir(f.Path) != "etc/NetworkManager/system-connections" {
					t.Errorf("%s has mode %o", f.Path, f.Mode)
				}
				got[filepath.Base(f.Path)] = string(f.Content)
			}
			if *update {
				fixture.NoError(t, os.MkdirAll(folder, 0o755))
				for file, content := range got {
					fixture.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644))
				}
			}
			want := map[string]string{}
			found := fixture.Must(filepath.Glob(filepath.Join(folder, "*.nmconnection")))
			for _, path := range found {
				content := fixture.Must(os.ReadFile(path))
				want[filepath.Base(path)] = string(content)
			}
			fixture.Equal(t, "run `go test ./network -update`", want, got)
		})
	}
}

// nmcli, if installed, reads each profile without errors, and writes all of its lines.
func TestNetworkManager(t *testing.T) {
	nmcli, err := exec.LookPath("nmcli")
	if err != nil {
		t.Skip("nmcli is not installed")
	}
	for _, name := range documents {
		for _, f := range parsed(t, name).Keyfiles() {
			var errs bytes.Buffer
			command := exec.CommandContext(t.Context(), nmcli, "--offline", "connection", "modify", "connection.autoconnect", "yes")
			command.Stdin, command.Stderr = bytes.NewReader(f.Content), &errs
			out, err := command.Output()
			if err != nil || errs.Len() > 0 {
				t.Errorf("%s: %v: %s", f.Path, err, errs.String())
			}
			for line := range strings.Lines(string(f.Content)) {
				if !strings.Contains(string(out), line) {
					t.Errorf("%s: line %q is missing:\n%s", f.Path, line, out)
				}
			}
		}
	}
}

// Addresses returns static addresses only (R-BIP-19).
func TestAddresses(t *testing.T) {
	for name, want := range map[string][]netip.Prefix{
		"static": {netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("198.51.100.10/28"), netip.MustParsePrefix("2001:db8::10/64")},
		"dhcp":   {netip.MustParsePrefix("192.0.2.7/31")},
	} {
		fixture.Equal(t, name, want, parsed(t, name).Addresses(), cmpopts.EquateComparable(netip.Prefix{}))
	}
}

const (
	byMAC = "- name: eno2\n  type: ethernet\n  identifier: mac-address\n  mac-address: 52:54:00:ab:cd:02\n"
	head  = "interfaces:\n- name: eno1\n  type: ethernet\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}\n"
	bond  = head + "- name: bond0\n  type: bond\n  link-aggregation:\n    mode: "
)

// Each document has exactly one error, with line, field and advice.
func TestInvalid(t *testing.T) {
	ethernetWith := func(more string) string { return "interfaces:\n- name: eno1\n  type: ethernet\n" + more }
	bondWith := func(mode, more string) string { return bond + mode + "\n    port: [eno2, eno3]\n" + more }
	options := func(mode, text string) string { return bondWith(mode, "    options: {"+text+"}\n") }
	routed := func(text string) string { return head + "routes: {config: [{" + text + "}]}\n" }
	for name, test := range map[string]struct {
		text string
		kind field.ErrorType
		want string
	}{
		"empty":           {"", field.ErrorTypeRequired, "f: Required value: the file is empty"},
		"no YAML":         {"interfaces:\n  - [", field.ErrorTypeTypeInvalid, "f:3: Invalid value: did not find expected node content; fix the YAML"},
		"second document": {head + "---\na: b\n", field.ErrorTypeTooMany, "f:6: Too many: there is a second document; remove it"},
		"a list":          {"- name: eno1", field.ErrorTypeTypeInvalid, "f:1: Invalid value: not a mapping; write fields as NAME: VALUE"},
		"null":            {"null", field.ErrorTypeTypeInvalid, "f:1: Invalid value: not a mapping; write fields as NAME: VALUE"},
		"item of nothing": {head + "-\n", field.ErrorTypeRequired, "f:5: interfaces[1].name: Required value: set a name"},
		"key twice":       {ethernetWith("  type: bond\n"), field.ErrorTypeDuplicate, "f:4: interfaces[0].type: Duplicate value: the field is set twice; remove one of them"},

		"unknown section":        {head + "route-rules: {config: []}\n", field.ErrorTypeForbidden, "f:5: route-rules: Forbidden: unknown or unsupported field; docs/network.md has the supported ones"},
		"unknown field":          {ethernetWith("  lldp: {enabled: true}\n"), field.ErrorTypeForbidden, "f:4: interfaces[0].lldp: "},
		"unknown field of IP":    {ethernetWith("  ipv4: {enabled: true, dhcp: true, dhcp-client-id: ll}\n"), field.ErrorTypeForbidden, "interfaces[0].ipv4.dhcp-client-id: "},
		"autoconf of IPv4":       {ethernetWith("  ipv4: {enabled: true, dhcp: true, autoconf: true}\n"), field.ErrorTypeForbidden, "interfaces[0].ipv4.autoconf: "},
		"unknown field of VLAN":  {head + "- name: v\n  type: vlan\n  vlan: {id: 3, base-iface: eno1, loose-binding: true}\n", field.ErrorTypeForbidden, "f:7: interfaces[1].vlan.loose-binding"},
		"unknown field of route": {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, state: absent"), field.ErrorTypeForbidden, "f:5: routes.config[0].state"},
		"unknown field of DNS":   {head + "dns-resolver: {config: {options: [rotate]}}\n", field.ErrorTypeForbidden, "f:5: dns-resolver.config.options"},

		"no name":          {"interfaces:\n- type: ethernet\n", field.ErrorTypeRequired, "f:2: interfaces[0].name: Required value: set a name"},
		"no type":          {"interfaces:\n- name: eno1\n", field.ErrorTypeRequired, "f:2: interfaces[0].type: Required value: write ethernet, bond or vlan"},
		"type":             {"interfaces:\n- name: eno1\n  type: linux-bridge\n", field.ErrorTypeNotSupported, `f:3: interfaces[0].type: Unsupported value: "linux-bridge": supported values: "ethernet", "bond", "vlan"`},
		"absent":           {ethernetWith("  state: absent\n"), field.ErrorTypeNotSupported, `f:4: interfaces[0].state: Unsupported value: "absent": supported values: "up"`},
		"long name":        {"interfaces:\n- name: sixteen-letters-\n  type: ethernet\n", field.ErrorTypeInvalid, "f:2: interfaces[0].name: "},
		"path for a name":  {"interfaces:\n- name: ../eno1\n  type: ethernet\n", field.ErrorTypeInvalid, "f:2: interfaces[0].name: "},
		"name twice":       {head + "- name: eno1\n  type: ethernet\n", field.ErrorTypeDuplicate, `f:5: interfaces[1].name: Duplicate value: "eno1": it is at interfaces[0].name too; keep one`},
		"MAC":              {ethernetWith("  mac-address: 01:00:5e:00:00:01\n"), field.ErrorTypeInvalid, "f:4: interfaces[0].mac-address: "},
		"no MAC":           {ethernetWith("  identifier: mac-address\n"), field.ErrorTypeRequired, "f:2: interfaces[0].mac-address: Required value: it identifies the interface; set it"},
		"MAC of a VLAN":    {head + "- name: v\n  type: vlan\n  identifier: mac-address\n  mac-address: 52:54:00:ab:cd:02\n  vlan: {id: 3, base-iface: eno1}\n", field.ErrorTypeInvalid, `f:7: interfaces[1].identifier: Invalid value: "mac-address": a vlan has no hardware to identify; remove it`},
		"name is a list":   {head + "- name: [a]\n  type: ethernet\n", field.ErrorTypeTypeInvalid, "f:5: interfaces[1].name: Invalid value: write text"},
		"MTU":              {ethernetWith("  mtu: 70000\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].mtu: Invalid value: "70000": write a number from 68 to 65535`},
		"MTU below IPv6's": {ethernetWith("  mtu: 1000\n  ipv6: {enabled: true}\n"), field.ErrorTypeInvalid, "f:4: interfaces[0].mtu: Invalid value: 1000: it is too small for IPv6; write 1280 or more"},
		"VLAN of ethernet": {ethernetWith("  vlan: {base-iface: eno2, id: 1}\n"), field.ErrorTypeForbidden, "f:4: interfaces[0].vlan: Forbidden: it is for type vlan, and the type is ethernet"},
		"bond without one": {"interfaces:\n- name: b\n  type: bond\n", field.ErrorTypeRequired, "f:2: interfaces[0].link-aggregation: Required value: set mode and port of the bond"},

		"no address anywhere": {ethernetWith(""), field.ErrorTypeRequired, "f:1: interfaces: Required value: no interface has an address; set addresses or DHCP on one of them"},
		"not enabled":         {ethernetWith("  ipv4: {dhcp: true}\n"), field.ErrorTypeRequired, "f:4: interfaces[0].ipv4.enabled: "},
		"disabled":            {ethernetWith("  ipv4: {enabled: false, dhcp: true}\n"), field.ErrorTypeInvalid, "f:4: interfaces[0].ipv4.enabled: Invalid value: false: there are addresses; write enabled: true, or remove dhcp, autoconf and address"},
		"static and DHCP":     {ethernetWith("  ipv4: {enabled: true, dhcp: true, address: [{ip: 192.0.2.7, prefix-length: 24}]}\n"), field.ErrorTypeForbidden, "f:4: interfaces[0].ipv4.address: Forbidden: there are static and automatic addresses; keep the addresses, or dhcp and autoconf"},
		"autoconf alone":      {ethernetWith("  ipv6: {enabled: true, autoconf: true}\n"), field.ErrorTypeInvalid, "interfaces[0].ipv6.autoconf: "},
		"enabled, and none":   {ethernetWith("  ipv4: {enabled: true}\n"), field.ErrorTypeRequired, "f:4: interfaces[0].ipv4.address: Required value: set addresses, or write dhcp: true or enabled: false"},
		"auto without DHCP":   {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7, prefix-length: 24}], auto-dns: false}\n"), field.ErrorTypeForbidden, "f:4: interfaces[0].ipv4.auto-dns: Forbidden: it has no effect without dhcp; remove it"},
		"word for a bool":     {ethernetWith("  ipv4: {enabled: maybe}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.enabled: Invalid value: "maybe": write true or false`},
		"address":             {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2, prefix-length: 24}]}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.address[0].ip: Invalid value: "192.0.2": write the address of a machine, such as 192.0.2.7 or 2001:db8::7`},
		"no address":          {ethernetWith("  ipv4: {enabled: true, address: [{prefix-length: 24}]}\n"), field.ErrorTypeRequired, "interfaces[0].ipv4.address[0].ip: "},
		"no length":           {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7}]}\n"), field.ErrorTypeRequired, "interfaces[0].ipv4.address[0].prefix-length: "},
		"length":              {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7, prefix-length: 33}]}\n"), field.ErrorTypeInvalid, "interfaces[0].ipv4.address[0].prefix-length: "},
		"other family":        {ethernetWith("  ipv4: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 24}]}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.address[0].ip: Invalid value: "2001:db8::1": it is not an address of ipv4; move it to the other family`},
		"network's address":   {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.0, prefix-length: 24}]}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.address[0].ip: Invalid value: "192.0.2.0/24": it is the network's own address, or its broadcast address; set one between them`},
		"broadcast":           {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.3.255, prefix-length: 23}]}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.address[0].ip: Invalid value: "192.0.3.255/23": it is the network's own address, or its broadcast address; set one between them`},
		"loopback":            {ethernetWith("  ipv4: {enabled: true, address: [{ip: 127.0.0.1, prefix-length: 8}]}\n"), field.ErrorTypeInvalid, `f:4: interfaces[0].ipv4.address[0].ip: Invalid value: "127.0.0.1": it is a loopback address; set one that other machines reach`},
		"address twice":       {head + "- name: eno2\n  type: ethernet\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 16}]}\n", field.ErrorTypeDuplicate, `f:7: interfaces[1].ipv4.address[0].ip: Duplicate value: "192.0.2.10": it is at interfaces[0].ipv4.address[0].ip too; keep one`},

		"no VLAN base":      {head + "- name: v\n  type: vlan\n  vlan: {id: 3}\n", field.ErrorTypeRequired, "f:7: interfaces[1].vlan.base-iface: "},
		"no VLAN number":    {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1}\n", field.ErrorTypeRequired, "interfaces[1].vlan.id: "},
		"VLAN number":       {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 4095}\n", field.ErrorTypeInvalid, "interfaces[1].vlan.id: "},
		"VLAN twice":        {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n- name: w\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n", field.ErrorTypeDuplicate, "f:10: interfaces[2].vlan.id: Duplicate value: 3: v has this VLAN of eno1 too; keep one"},
		"VLAN on a VLAN":    {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n- name: w\n  type: vlan\n  vlan: {base-iface: v, id: 4}\n", field.ErrorTypeInvalid, `f:10: interfaces[2].vlan.base-iface: Invalid value: "v": it is a VLAN itself; use an ethernet interface or a bond`},
		"VLAN's larger MTU": {head + "- name: v\n  type: vlan\n  mtu: 9000\n  vlan: {base-iface: eno1, id: 3}\n", field.ErrorTypeInvalid, "f:7: interfaces[1].mtu: Invalid value: 9000: it is more than the 1500 of eno1 below it; increase that MTU"},

		"mode":                 {bondWith("fast", ""), field.ErrorTypeNotSupported, `f:8: interfaces[1].link-aggregation.mode: Unsupported value: "fast": supported values: "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad",`},
		"no mode":              {head + "- name: b\n  type: bond\n  link-aggregation: {port: [eno2]}\n", field.ErrorTypeRequired, "interfaces[1].link-aggregation.mode: "},
		"no port":              {bond + "802.3ad\n", field.ErrorTypeRequired, "f:7: interfaces[1].link-aggregation.port: Required value: set the interfaces of the bond"},
		"port and ports":       {bondWith("802.3ad", "    ports: [eno4]\n"), field.ErrorTypeForbidden, "f:10: interfaces[1].link-aggregation.ports: Forbidden: it is the same field as port; keep that"},
		"unknown option":       {options("802.3ad", "miimom: 100"), field.ErrorTypeNotSupported, `f:10: interfaces[1].link-aggregation.options: Unsupported value: "miimom": supported values: "ad_actor_sys_prio", "ad_actor_system", "ad_select", "ad_user_port_key",`},
		"number of option":     {options("802.3ad", "miimon: soon"), field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.miimon: Invalid value: "soon": write a number from 0 to 2147483647`},
		"word of option":       {options("802.3ad", "lacp_rate: 2"), field.ErrorTypeNotSupported, `f:10: interfaces[1].link-aggregation.options.lacp_rate: Unsupported value: "2": supported values: "slow", "fast"`},
		"list for option":      {options("active-backup", "arp_interval: 1, arp_ip_target: [192.0.2.1]"), field.ErrorTypeTypeInvalid, "f:10: interfaces[1].link-aggregation.options.arp_ip_target: Invalid value: write one value"},
		"target of option":     {options("active-backup", "arp_interval: 1, arp_ip_target: 'a,b'"), field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.arp_ip_target: Invalid value: "a,b": see the kernel's documentation of bonding`},
		"option of a mode":     {options("active-backup", "lacp_rate: fast"), field.ErrorTypeForbidden, "f:10: interfaces[1].link-aggregation.options.lacp_rate: Forbidden: not available in mode active-backup; remove it, or use mode 802.3ad"},
		"two monitors":         {options("active-backup", "miimon: 100, arp_interval: 100, arp_ip_target: 192.0.2.1"), field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.arp_interval: Invalid value: "100": there is miimon too; keep one`},
		"ARP without target":   {options("active-backup", "arp_interval: 100"), field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.arp_interval: Invalid value: "100": arp_interval and arp_ip_target need each other; set both`},
		"validate without ARP": {options("active-backup", "arp_validate: all"), field.ErrorTypeInvalid, "options.arp_validate: "},
		"delay without miimon": {options("802.3ad", "miimon: 0, updelay: 100"), field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.updelay: Invalid value: "100": it has no effect without miimon; set that`},
		"notices":              {options("802.3ad", "num_grat_arp: 1, num_unsol_na: 2"), field.ErrorTypeInvalid, "options.num_unsol_na: "},
		"primary":              {options("active-backup", "primary: eno1"), field.ErrorTypeNotSupported, `f:10: interfaces[1].link-aggregation.options.primary: Unsupported value: "eno1": supported values: "eno2", "eno3"`},
		"primary by MAC":       {options("active-backup", "primary: eno2") + byMAC + "- {name: eno3, type: ethernet}\n", field.ErrorTypeInvalid, `f:10: interfaces[1].link-aggregation.options.primary: Invalid value: "eno2": it is identified by an address, and may have another name; identify it by its name`},
		"kernel's port":        {bondWith("802.3ad", byMAC), field.ErrorTypeNotFound, `f:9: interfaces[1].link-aggregation.port[1]: Not found: "eno3": it is not in interfaces, and could be the kernel's name of one that is identified by its hardware`},
		"kernel's base":        {head + byMAC + "- name: v\n  type: vlan\n  vlan: {base-iface: eno3, id: 3}\n", field.ErrorTypeNotFound, `f:11: interfaces[2].vlan.base-iface: Not found: "eno3": it is not in interfaces, and could be the kernel's name of one that is identified by its hardware address; add it`},
		"port with address":    {bond + "802.3ad\n    port: [eno1]\n", field.ErrorTypeInvalid, `f:2: interfaces[0]: Invalid value: "eno1": it is a port of bond0, and has addresses of its own; set the addresses on the bond`},
		"port of two":          {bondWith("802.3ad", "- name: bond1\n  type: bond\n  link-aggregation: {mode: 802.3ad, port: [eno3]}\n"), field.ErrorTypeInvalid, `f:12: interfaces[2].link-aggregation.port[0]: Invalid value: "eno3": it is a port of bond0 already; keep one`},
		"port that is a bond":  {bondWith("802.3ad", "- name: bond1\n  type: bond\n  link-aggregation: {mode: 802.3ad, port: [bond0]}\n"), field.ErrorTypeInvalid, `f:12: interfaces[2].link-aggregation.port[0]: Invalid value: "bond0": it is a bond; use ethernet interfaces`},
		"port below a VLAN":    {bondWith("802.3ad", "- name: v\n  type: vlan\n  vlan: {base-iface: eno2, id: 3}\n"), field.ErrorTypeInvalid, `f:9: interfaces[1].link-aggregation.port[0]: Invalid value: "eno2": it is below a VLAN; put the VLAN on the bond`},

		"destination":          {routed("destination: default, next-hop-interface: eno1"), field.ErrorTypeInvalid, `f:5: routes.config[0].destination: Invalid value: "default": write a network, such as 192.0.2.0/24 or fd01::/48`},
		"destination's host":   {routed("destination: 10.0.0.1/8, next-hop-interface: eno1"), field.ErrorTypeInvalid, "write 10.0.0.0/8"},
		"no device":            {routed("destination: 10.0.0.0/8, next-hop-address: 192.0.2.1"), field.ErrorTypeRequired, "routes.config[0].next-hop-interface: "},
		"unknown device":       {routed("destination: 10.0.0.0/8, next-hop-interface: eno9"), field.ErrorTypeNotFound, `f:5: routes.config[0].next-hop-interface: Not found: "eno9": use one of interfaces`},
		"gateway's family":     {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, next-hop-address: 2001:db8::1"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-address: Invalid value: "2001:db8::1": it is of another family than 10.0.0.0/8; use one of the destination's family`},
		"gateway out of reach": {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 198.51.100.1"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-address: Invalid value: "198.51.100.1": it is in no network of eno1; set an address in one`},
		"gateway itself":       {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.10"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-address: Invalid value: "192.0.2.10": it is an address of this machine; set the router's address`},
		"gateway of the net":   {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.0"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-address: Invalid value: "192.0.2.0": it is the network's own address, or its broadcast address; set the router's address`},
		"gateway of all":       {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.255"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-address: Invalid value: "192.0.2.255": it is the network's own address, or its broadcast address; set the router's address`},
		"route of no family":   {routed("destination: '::/0', next-hop-interface: eno1, next-hop-address: fe80::1"), field.ErrorTypeInvalid, `f:5: routes.config[0].next-hop-interface: Invalid value: "eno1": it has no ipv6; enable it there, or use another interface`},
		"table":                {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, table-id: 0"), field.ErrorTypeInvalid, "routes.config[0].table-id: "},
		"metric":               {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, metric: -1"), field.ErrorTypeInvalid, "routes.config[0].metric: "},

		"DNS server":           {head + "dns-resolver: {config: {server: [dns.example.com]}}\n", field.ErrorTypeInvalid, `f:5: dns-resolver.config.server[0]: Invalid value: "dns.example.com": write the address of a machine, such as 192.0.2.7 or 2001:db8::7`},
		"DNS server's family":  {head + "dns-resolver: {config: {server: [192.0.2.1, '2001:db8::1']}}\n", field.ErrorTypeInvalid, `f:5: dns-resolver.config.server[1]: Invalid value: "2001:db8::1": no interface reaches it; remove it, or enable ipv6`},
		"search":               {head + "dns-resolver: {config: {search: ['a b']}}\n", field.ErrorTypeInvalid, `f:5: dns-resolver.config.search[0]: Invalid value: "a b": write a domain, such as example.com`},
		"server is not a list": {head + "dns-resolver: {config: {server: 192.0.2.1}}\n", field.ErrorTypeTypeInvalid, "f:5: dns-resolver.config.server: Invalid value: write a list; begin each item with -"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("f", []byte(test.text))
			var faults document.Faults
			if !errors.As(err, &faults) || len(faults) != 1 || c != nil {
				t.Fatalf("%d errors, want 1: %v", len(faults), err)
			}
			if faults[0].Problem.Type != test.kind || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", faults[0].Problem.Type, err, test.want)
			}
		})
	}
}

func TestAllAtOnce(t *testing.T) {
	_, err := Parse("f", []byte("hostname: x\ninterfaces:\n- name: a\n  type: team\n- name: b\n  type: ethernet\n  mtu: big\n  ipv4: {enabled: true}\n"))
	want := "f:1: hostname: Forbidden: unknown or unsupported field; docs/network.md has the supported ones\n" +
		"f:4: interfaces[0].type: Unsupported value: \"team\": supported values: \"ethernet\", \"bond\", \"vlan\"\n" +
		"f:7: interfaces[1].mtu: Invalid value: \"big\": write a number from 68 to 65535\n" +
		"f:8: interfaces[1].ipv4.address: Required value: set addresses, or write dhcp: true or enabled: false"
	fixture.Equal(t, "", want, err.Error())
}

// NMState reads a boolean in quotes.
func TestQuotedBoolean(t *testing.T) {
	c := fixture.Must(Parse("f", []byte("interfaces: [{name: eno1, type: ethernet, ipv4: {enabled: 'true', dhcp: \"yes\"}, ipv6: {enabled: 'False'}}]")))
	if ipv4, ipv6 := c.Automatic(); !ipv4 || ipv6 || c.interfaces[0].ip[six].enabled {
		t.Errorf("automatic %t %t: %+v", ipv4, ipv6, c.interfaces[0])
	}
}

// A gateway may be reachable by a route of its own.
func TestGatewayOnLink(t *testing.T) {
	text := "interfaces: [{name: eno1, type: ethernet, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 32}]}}]\nroutes:\n  config:\n" +
		"  - {destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 198.51.100.1}\n  - {destination: 198.51.100.1/32, next-hop-interface: eno1}\n"
	if _, err := Parse("f", []byte(text)); err != nil {
		t.Error(err)
	}
}

// Parse terminates for any document, and a profile has only sections, keys and empty lines.
func FuzzParse(f *testing.F) {
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("interfaces: &a [*a]"))
	f.Add([]byte("interfaces:\n- &a {name: a, type: vlan, vlan: *a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if (err == nil) != (c != nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if c == nil {
			return
		}
		paths := map[string]bool{}
		for _, file := range c.Keyfiles() {
			if paths[file.Path] || strings.Contains(file.Path, "..") && filepath.Dir(file.Path) != filepath.Clean(folder) {
				t.Errorf("path %s", file.Path)
			}
			paths[file.Path] = true
			for line := range strings.Lines(string(file.Content)) {
				if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '[' && !strings.Contains(line, "=") {
					t.Errorf("line %q in %s", line, file.Content)
				}
			}
		}
	})
}
