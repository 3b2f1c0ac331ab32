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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solonode/sno/render/inputs"
)

var update = flag.Bool("update", false, "write testdata")

func parsed(t *testing.T, name string) *Config {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
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
				if err := os.MkdirAll(folder, 0o755); err != nil {
					t.Fatal(err)
				}
				for file, content := range got {
					if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := map[string]string{}
			found, err := filepath.Glob(filepath.Join(folder, "*.nmconnection"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range found {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				want[filepath.Base(path)] = string(content)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("run `go test ./network -update` (-want +got):\n%s", diff)
			}
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
		if diff := cmp.Diff(want, parsed(t, name).Addresses(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
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
		kind error
		want string
	}{
		"empty":           {"", inputs.ErrSyntax, "f: the file is empty"},
		"no YAML":         {"interfaces:\n  - [", inputs.ErrSyntax, "f:2: "},
		"second document": {head + "---\na: b\n", inputs.ErrSyntax, "f:5: there is a second document"},
		"a list":          {"- name: eno1", inputs.ErrSyntax, "f: not a mapping"},
		"null":            {"null", inputs.ErrMissing, "interfaces: no interface has an address"},
		"item of nothing": {head + "-\n", inputs.ErrMissing, "f:5: interfaces[1]: the item is empty"},
		"key twice":       {ethernetWith("  type: bond\n"), inputs.ErrDuplicate, "f:4: interfaces[0].type: duplicate field"},

		"unknown section":        {head + "route-rules: {config: []}\n", inputs.ErrUnknownField, "f:5: route-rules: unknown or unsupported field; remove it; supported fields are dns-resolver, interfaces, routes"},
		"unknown field":          {ethernetWith("  lldp: {enabled: true}\n"), inputs.ErrUnknownField, "f:4: interfaces[0].lldp: "},
		"unknown field of IP":    {ethernetWith("  ipv4: {enabled: true, dhcp: true, dhcp-client-id: ll}\n"), inputs.ErrUnknownField, "interfaces[0].ipv4.dhcp-client-id: "},
		"autoconf of IPv4":       {ethernetWith("  ipv4: {enabled: true, autoconf: true}\n"), inputs.ErrUnknownField, "interfaces[0].ipv4.autoconf: "},
		"unknown field of VLAN":  {head + "- name: v\n  type: vlan\n  vlan: {id: 3, base-iface: eno1, loose-binding: true}\n", inputs.ErrUnknownField, "f:7: interfaces[1].vlan.loose-binding"},
		"unknown field of route": {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, state: absent"), inputs.ErrUnknownField, "f:5: routes.config[0].state"},
		"unknown field of DNS":   {head + "dns-resolver: {config: {options: [rotate]}}\n", inputs.ErrUnknownField, "f:5: dns-resolver.config.options"},

		"no name":          {"interfaces:\n- type: ethernet\n", inputs.ErrMissing, "f:2: interfaces[0].name: the interface has no name"},
		"no type":          {"interfaces:\n- name: eno1\n", inputs.ErrMissing, "interfaces[0].type: the interface has no type"},
		"type":             {"interfaces:\n- name: eno1\n  type: linux-bridge\n", inputs.ErrInvalid, `f:3: interfaces[0].type: unknown value "linux-bridge"; use one of ethernet, bond, vlan`},
		"absent":           {ethernetWith("  state: absent\n"), inputs.ErrInvalid, `f:4: interfaces[0].state: unknown value "absent"; use one of up`},
		"long name":        {"interfaces:\n- name: sixteen-letters-\n  type: ethernet\n", inputs.ErrInvalid, "f:2: interfaces[0].name: "},
		"path for a name":  {"interfaces:\n- name: ../eno1\n  type: ethernet\n", inputs.ErrInvalid, "f:2: interfaces[0].name: "},
		"name twice":       {head + "- name: eno1\n  type: ethernet\n", inputs.ErrDuplicate, `f:5: interfaces[1].name: "eno1" is the name of interfaces[0] too`},
		"MAC":              {ethernetWith("  mac-address: 01:00:5e:00:00:01\n"), inputs.ErrInvalid, "f:4: interfaces[0].mac-address: "},
		"no MAC":           {ethernetWith("  identifier: mac-address\n"), inputs.ErrMissing, "interfaces[0].mac-address: the address that identifies the interface is missing"},
		"MAC of a VLAN":    {head + "- name: v\n  type: vlan\n  identifier: mac-address\n  mac-address: 52:54:00:ab:cd:02\n  vlan: {id: 3, base-iface: eno1}\n", inputs.ErrInvalid, "f:7: interfaces[1].identifier: a vlan has no hardware to identify"},
		"MTU":              {ethernetWith("  mtu: 70000\n"), inputs.ErrInvalid, `f:4: interfaces[0].mtu: invalid number "70000"; write a number from 68 to 65535`},
		"MTU below IPv6's": {ethernetWith("  mtu: 1000\n  ipv6: {enabled: true}\n"), inputs.ErrInvalid, "f:4: interfaces[0].mtu: 1000 is too small for IPv6"},
		"VLAN of ethernet": {ethernetWith("  vlan: {base-iface: eno2, id: 1}\n"), inputs.ErrInvalid, "f:4: interfaces[0].vlan: the type is ethernet"},
		"bond without one": {"interfaces:\n- name: b\n  type: bond\n", inputs.ErrInvalid, "interfaces[0].link-aggregation: the type is bond"},

		"no address anywhere": {ethernetWith(""), inputs.ErrMissing, "f:1: interfaces: no interface has an address"},
		"not enabled":         {ethernetWith("  ipv4: {dhcp: true}\n"), inputs.ErrMissing, "f:4: interfaces[0].ipv4.enabled: "},
		"disabled":            {ethernetWith("  ipv4: {enabled: false, dhcp: true}\n"), inputs.ErrInvalid, "f:4: interfaces[0].ipv4.enabled: there are addresses"},
		"static and DHCP":     {ethernetWith("  ipv4: {enabled: true, dhcp: true, address: [{ip: 192.0.2.7, prefix-length: 24}]}\n"), inputs.ErrInvalid, "interfaces[0].ipv4.address: "},
		"autoconf alone":      {ethernetWith("  ipv6: {enabled: true, autoconf: true}\n"), inputs.ErrUnsupported, "interfaces[0].ipv6.autoconf: "},
		"enabled, and none":   {ethernetWith("  ipv4: {enabled: true}\n"), inputs.ErrMissing, "interfaces[0].ipv4.address: enabled without an address"},
		"auto without DHCP":   {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7, prefix-length: 24}], auto-dns: false}\n"), inputs.ErrIgnored, "interfaces[0].ipv4.auto-dns: it has no effect without dhcp"},
		"word for a bool":     {ethernetWith("  ipv4: {enabled: maybe}\n"), inputs.ErrInvalid, `interfaces[0].ipv4.enabled: "maybe" is neither true nor false`},
		"address":             {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2, prefix-length: 24}]}\n"), inputs.ErrInvalid, `interfaces[0].ipv4.address[0].ip: "192.0.2" is not an address`},
		"no address":          {ethernetWith("  ipv4: {enabled: true, address: [{prefix-length: 24}]}\n"), inputs.ErrMissing, "interfaces[0].ipv4.address[0].ip: "},
		"no length":           {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7}]}\n"), inputs.ErrMissing, "interfaces[0].ipv4.address[0].prefix-length: "},
		"length":              {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.7, prefix-length: 33}]}\n"), inputs.ErrInvalid, "interfaces[0].ipv4.address[0].prefix-length: "},
		"other family":        {ethernetWith("  ipv4: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 24}]}\n"), inputs.ErrInvalid, "2001:db8::1 is not an address of ipv4"},
		"network's address":   {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.2.0, prefix-length: 24}]}\n"), inputs.ErrInvalid, "192.0.2.0/24 is the network's own address"},
		"broadcast":           {ethernetWith("  ipv4: {enabled: true, address: [{ip: 192.0.3.255, prefix-length: 23}]}\n"), inputs.ErrInvalid, "192.0.3.255/23 is the network's own address, or its broadcast"},
		"loopback":            {ethernetWith("  ipv4: {enabled: true, address: [{ip: 127.0.0.1, prefix-length: 8}]}\n"), inputs.ErrInvalid, "127.0.0.1 is a loopback address"},
		"address twice":       {head + "- name: eno2\n  type: ethernet\n  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 16}]}\n", inputs.ErrDuplicate, "f:7: interfaces[1].ipv4.address[0].ip: 192.0.2.10 is at interfaces[0].ipv4.address[0].ip too"},

		"no VLAN base":      {head + "- name: v\n  type: vlan\n  vlan: {id: 3}\n", inputs.ErrMissing, "f:7: interfaces[1].vlan.base-iface: "},
		"no VLAN number":    {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1}\n", inputs.ErrMissing, "interfaces[1].vlan.id: "},
		"VLAN number":       {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 4095}\n", inputs.ErrInvalid, "interfaces[1].vlan.id: "},
		"VLAN twice":        {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n- name: w\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n", inputs.ErrDuplicate, "f:10: interfaces[2].vlan.id: v has VLAN 3 of eno1 too"},
		"VLAN on a VLAN":    {head + "- name: v\n  type: vlan\n  vlan: {base-iface: eno1, id: 3}\n- name: w\n  type: vlan\n  vlan: {base-iface: v, id: 4}\n", inputs.ErrUnsupported, "interfaces[2].vlan.base-iface: v is a VLAN itself"},
		"VLAN's larger MTU": {head + "- name: v\n  type: vlan\n  mtu: 9000\n  vlan: {base-iface: eno1, id: 3}\n", inputs.ErrInvalid, "f:7: interfaces[1].mtu: 9000 is more than the 1500 of eno1 below it"},

		"mode":                 {bondWith("fast", ""), inputs.ErrInvalid, `f:8: interfaces[1].link-aggregation.mode: unknown value "fast"`},
		"no mode":              {head + "- name: b\n  type: bond\n  link-aggregation: {port: [eno2]}\n", inputs.ErrMissing, "interfaces[1].link-aggregation.mode: "},
		"no port":              {bond + "802.3ad\n", inputs.ErrMissing, "interfaces[1].link-aggregation.port: the bond has no ports"},
		"port and ports":       {bondWith("802.3ad", "    ports: [eno4]\n"), inputs.ErrDuplicate, "interfaces[1].link-aggregation.ports: "},
		"unknown option":       {options("802.3ad", "miimom: 100"), inputs.ErrUnknownField, "f:10: interfaces[1].link-aggregation.options.miimom: "},
		"number of option":     {options("802.3ad", "miimon: soon"), inputs.ErrInvalid, `interfaces[1].link-aggregation.options.miimon: invalid number "soon"`},
		"word of option":       {options("802.3ad", "lacp_rate: 2"), inputs.ErrInvalid, `options.lacp_rate: unknown value "2"; use one of slow, fast`},
		"list for option":      {options("active-backup", "arp_interval: 1, arp_ip_target: [192.0.2.1]"), inputs.ErrInvalid, "options.arp_ip_target: not a single value"},
		"target of option":     {options("active-backup", "arp_interval: 1, arp_ip_target: 'a,b'"), inputs.ErrInvalid, `options.arp_ip_target: invalid value "a,b"`},
		"option of a mode":     {options("active-backup", "lacp_rate: fast"), inputs.ErrInvalid, "f:10: interfaces[1].link-aggregation.options.lacp_rate: not available in mode active-backup; remove it, or use mode 802.3ad"},
		"two monitors":         {options("active-backup", "miimon: 100, arp_interval: 100, arp_ip_target: 192.0.2.1"), inputs.ErrInvalid, "options.arp_interval: there is miimon too"},
		"ARP without target":   {options("active-backup", "arp_interval: 100"), inputs.ErrInvalid, "options.arp_interval: arp_interval and arp_ip_target need each other"},
		"validate without ARP": {options("active-backup", "arp_validate: all"), inputs.ErrInvalid, "options.arp_validate: "},
		"delay without miimon": {options("802.3ad", "miimon: 0, updelay: 100"), inputs.ErrInvalid, "options.updelay: it has no effect without miimon"},
		"notices":              {options("802.3ad", "num_grat_arp: 1, num_unsol_na: 2"), inputs.ErrInvalid, "options.num_unsol_na: "},
		"primary":              {options("active-backup", "primary: eno1"), inputs.ErrInvalid, `options.primary: "eno1" is not a port of the bond; use one of eno2, eno3`},
		"primary by MAC":       {options("active-backup", "primary: eno2") + byMAC + "- {name: eno3, type: ethernet}\n", inputs.ErrInvalid, "options.primary: eno2 is identified by an address"},
		"kernel's port":        {bondWith("802.3ad", byMAC), inputs.ErrMissing, `f:9: interfaces[1].link-aggregation.port[1]: "eno3" is not in interfaces, and could be the kernel's name of one`},
		"kernel's base":        {head + byMAC + "- name: v\n  type: vlan\n  vlan: {base-iface: eno3, id: 3}\n", inputs.ErrMissing, `interfaces[2].vlan.base-iface: "eno3" is not in interfaces`},
		"port with address":    {bond + "802.3ad\n    port: [eno1]\n", inputs.ErrInvalid, "f:2: interfaces[0]: eno1 is a port of bond0, and has addresses of its own"},
		"port of two":          {bondWith("802.3ad", "- name: bond1\n  type: bond\n  link-aggregation: {mode: 802.3ad, port: [eno3]}\n"), inputs.ErrDuplicate, "f:12: interfaces[2].link-aggregation.port[0]: eno3 is a port of bond0 already"},
		"port that is a bond":  {bondWith("802.3ad", "- name: bond1\n  type: bond\n  link-aggregation: {mode: 802.3ad, port: [bond0]}\n"), inputs.ErrUnsupported, "interfaces[2].link-aggregation.port[0]: bond0 is a bond"},
		"port below a VLAN":    {bondWith("802.3ad", "- name: v\n  type: vlan\n  vlan: {base-iface: eno2, id: 3}\n"), inputs.ErrInvalid, "interfaces[1].link-aggregation.port[0]: eno2 is below a VLAN"},

		"destination":          {routed("destination: default, next-hop-interface: eno1"), inputs.ErrInvalid, `f:5: routes.config[0].destination: "default" is not a network; write a network, such as 0.0.0.0/0`},
		"destination's host":   {routed("destination: 10.0.0.1/8, next-hop-interface: eno1"), inputs.ErrInvalid, "write 10.0.0.0/8"},
		"no device":            {routed("destination: 10.0.0.0/8, next-hop-address: 192.0.2.1"), inputs.ErrMissing, "routes.config[0].next-hop-interface: "},
		"unknown device":       {routed("destination: 10.0.0.0/8, next-hop-interface: eno9"), inputs.ErrMissing, `routes.config[0].next-hop-interface: there is no interface "eno9"`},
		"gateway's family":     {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, next-hop-address: 2001:db8::1"), inputs.ErrInvalid, "routes.config[0].next-hop-address: 2001:db8::1 is of another family than 10.0.0.0/8"},
		"gateway out of reach": {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 198.51.100.1"), inputs.ErrInvalid, "routes.config[0].next-hop-address: 198.51.100.1 is in no network of eno1"},
		"gateway itself":       {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.10"), inputs.ErrInvalid, "routes.config[0].next-hop-address: 192.0.2.10 is an address of this machine; set the router's address"},
		"gateway of the net":   {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.0"), inputs.ErrInvalid, "routes.config[0].next-hop-address: 192.0.2.0 is the network's own address"},
		"gateway of all":       {routed("destination: 0.0.0.0/0, next-hop-interface: eno1, next-hop-address: 192.0.2.255"), inputs.ErrInvalid, "routes.config[0].next-hop-address: 192.0.2.255 is the network's own address"},
		"route of no family":   {routed("destination: '::/0', next-hop-interface: eno1, next-hop-address: fe80::1"), inputs.ErrInvalid, "routes.config[0].next-hop-interface: eno1 has no ipv6"},
		"table":                {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, table-id: 0"), inputs.ErrInvalid, "routes.config[0].table-id: "},
		"metric":               {routed("destination: 10.0.0.0/8, next-hop-interface: eno1, metric: -1"), inputs.ErrInvalid, "routes.config[0].metric: "},

		"DNS server":           {head + "dns-resolver: {config: {server: [dns.example.com]}}\n", inputs.ErrInvalid, `f:5: dns-resolver.config.server[0]: "dns.example.com" is not an address`},
		"DNS server's family":  {head + "dns-resolver: {config: {server: [192.0.2.1, '2001:db8::1']}}\n", inputs.ErrInvalid, "dns-resolver.config.server[1]: no interface reaches 2001:db8::1; remove it, or enable ipv6"},
		"search":               {head + "dns-resolver: {config: {search: ['a b']}}\n", inputs.ErrInvalid, `dns-resolver.config.search[0]: "a b" is not a domain`},
		"server is not a list": {head + "dns-resolver: {config: {server: 192.0.2.1}}\n", inputs.ErrSyntax, "dns-resolver.config.server: not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("f", []byte(test.text))
			var faults inputs.Faults
			if !errors.As(err, &faults) || len(faults) != 1 || c != nil {
				t.Fatalf("%d errors, want 1: %v", len(faults), err)
			}
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) || faults[0].Advice == "" {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestAllAtOnce(t *testing.T) {
	_, err := Parse("f", []byte("hostname: x\ninterfaces:\n- name: a\n  type: team\n- name: b\n  type: ethernet\n  mtu: big\n  ipv4: {enabled: true}\n"))
	want := "f:1: hostname: unknown or unsupported field; remove it; supported fields are dns-resolver, interfaces, routes\n" +
		"f:4: interfaces[0].type: unknown value \"team\"; use one of ethernet, bond, vlan\n" +
		"f:7: interfaces[1].mtu: invalid number \"big\"; write a number from 68 to 65535\n" +
		"f:8: interfaces[1].ipv4.address: enabled without an address; set addresses, or write dhcp: true or enabled: false"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// NMState reads a boolean in quotes.
func TestQuotedBoolean(t *testing.T) {
	c, err := Parse("f", []byte("interfaces: [{name: eno1, type: ethernet, ipv4: {enabled: 'true', dhcp: \"yes\"}, ipv6: {enabled: 'False'}}]"))
	if err != nil {
		t.Fatal(err)
	}
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
