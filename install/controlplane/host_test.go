// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

func TestCompleteSettings(t *testing.T) {
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	host := Host{Name: "CP-1.example.com.", Interfaces: []Interface{
		{"eno1", []netip.Prefix{prefix("198.51.100.7/24"), prefix("2001:db8::20/64"), prefix("2001:db8::10/64")}},
		{"eno2", []netip.Prefix{prefix("192.0.2.10/24"), prefix("2001:db8::5/64")}},
	}}
	v4, v6 := prefix("192.0.2.0/24"), prefix("2001:db8::/64")
	for name, test := range map[string]struct {
		settings node.Settings
		host     string
		want     node.Settings
		err      error
	}{
		"found":            {node.Settings{MachineNetworks: []netip.Prefix{v4, v6}}, host.Name, node.Settings{Name: "cp-1.example.com", Addresses: []netip.Addr{addr("192.0.2.10"), addr("2001:db8::10")}}, nil},
		"IPv6 first":       {node.Settings{MachineNetworks: []netip.Prefix{v6, v4}}, host.Name, node.Settings{Name: "cp-1.example.com", Addresses: []netip.Addr{addr("2001:db8::10"), addr("192.0.2.10")}}, nil},
		"given":            {node.Settings{Name: "a", Addresses: []netip.Addr{addr("203.0.113.1")}}, "localhost", node.Settings{Name: "a", Addresses: []netip.Addr{addr("203.0.113.1")}}, nil},
		"no name yet":      {node.Settings{MachineNetworks: []netip.Prefix{v4}}, "localhost.localdomain", node.Settings{}, ErrName},
		"another network":  {node.Settings{MachineNetworks: []netip.Prefix{prefix("10.0.0.0/8")}}, host.Name, node.Settings{}, ErrAddress},
		"no network given": {node.Settings{}, host.Name, node.Settings{}, ErrAddress},
	} {
		t.Run(name, func(t *testing.T) {
			h := host
			h.Name = test.host
			got, err := CompleteSettings(test.settings, h)
			if !errors.Is(err, test.err) || errors.Is(test.err, ErrAddress) && !errors.Is(err, phase.ErrInput) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			test.want.MachineNetworks = test.settings.MachineNetworks
			fixture.Equal(t, "", test.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}))
		})
	}
}

// The interfaces of default routes of both families are read from the kernel's tables.
func TestDefaultRoutes(t *testing.T) {
	root := t.TempDir()
	fixture.Put(t, root, "proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"+
		"eno2\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\neno1\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n")
	fixture.Put(t, root, "proc/net/ipv6_route", "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000064 00000001 00000000 00000003 eno3\n"+
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n")
	fixture.Equal(t, "", []string{"eno2", "eno3"}, fixture.Must(defaultRoutes(root)))
}

// The host has the machine's name and every interface that is up, the one with the default route first.
func TestReadHost(t *testing.T) {
	h, err := ReadHost("/")
	name, _ := os.Hostname()
	if err != nil || h.Name != name {
		t.Fatalf("%+v, %v", h, err)
	}
	all := fixture.Must(net.Interfaces())
	var want, got []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			want = append(want, i.Name)
		}
	}
	for _, i := range h.Interfaces {
		got = append(got, i.Name)
		for _, p := range i.Addresses {
			if a := p.Addr(); a.IsLoopback() || a.IsLinkLocalUnicast() {
				t.Errorf("%s has %s, which other machines cannot reach", i.Name, a)
			}
		}
	}
	slices.Sort(want)
	fixture.Equal(t, "", want, slices.Sorted(slices.Values(got)))
	// The kernel chooses the source address for another network; nothing is sent.
	connection, err := net.Dial("udp4", "203.0.113.1:9")
	if err != nil {
		t.Skipf("no route for IPv4: %v", err)
	}
	defer connection.Close()                                          //nolint:errcheck // of a test
	source := connection.LocalAddr().(*net.UDPAddr).AddrPort().Addr() //nolint:forcetypeassert // of UDP
	s, err := CompleteSettings(node.Settings{Name: "a", MachineNetworks: []netip.Prefix{netip.PrefixFrom(source, 8).Masked()}}, h)
	if err != nil || !slices.ContainsFunc(h.Interfaces[0].Addresses, func(p netip.Prefix) bool { return p.Addr() == source }) {
		t.Errorf("the kernel sends from %s, and the machine is %+v: %v, %v", source, h, s.Addresses, err)
	}
}
