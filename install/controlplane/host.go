// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

// Host has the name and addresses of a machine.
type Host struct {
	Name string
	// Interfaces are the interfaces that are up, the one with the default route first.
	Interfaces []Interface
}

// Interface is a network interface.
type Interface struct {
	Name      string
	Addresses []netip.Prefix
}

var (
	// ErrName is in the error of a machine that has no hostname yet.
	ErrName = errors.New("the machine has no hostname of its own: set it by DHCP, DNS or --extra files/etc/hostname")
	// ErrAddress is in the error of a machine without an address in the machine networks.
	ErrAddress = errors.New("no address of the machine is in a machine network: change networking.machineNetwork, or the machine's address")
)

// CompleteSettings returns the settings with the node's name and addresses. Existing values are kept. The default name
// is the hostname. The default addresses are one of each family, in the order of the machine networks: the lowest
// address of the first interface with one in the network, so that every call returns the same.
func CompleteSettings(s node.Settings, h Host) (node.Settings, error) {
	if s.Name == "" {
		name := strings.ToLower(strings.TrimSuffix(h.Name, "."))
		if name == "" || name == "localhost" || strings.HasPrefix(name, "localhost.") || name == "(none)" {
			return s, fmt.Errorf("hostname %q: %w", h.Name, ErrName)
		}
		s.Name = name
	}
	if len(s.Addresses) > 0 {
		return s, nil
	}
	families := map[bool]bool{}
	var found []netip.Addr
	for _, network := range s.MachineNetworks {
		if families[network.Addr().Is6()] {
			continue
		}
		if a := addressIn(network, h); a.IsValid() {
			families[network.Addr().Is6()] = true
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return s, fmt.Errorf("%w: machine networks %v, interfaces %v: %w", ErrAddress, s.MachineNetworks, h.Interfaces, phase.ErrInput)
	}
	s.Addresses = found
	return s, nil
}

// addressIn returns the lowest address of the first interface that has one in the network.
func addressIn(network netip.Prefix, h Host) netip.Addr {
	for _, i := range h.Interfaces {
		var lowest netip.Addr
		for _, p := range i.Addresses {
			a := p.Addr().Unmap()
			if network.Contains(a) && (!lowest.IsValid() || a.Less(lowest)) {
				lowest = a
			}
		}
		if lowest.IsValid() {
			return lowest
		}
	}
	return netip.Addr{}
}

// ReadHost returns the name and addresses of the machine on which it runs. root is the root folder.
func ReadHost(root string) (Host, error) {
	name, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("read the hostname: %w", err)
	}
	h := Host{Name: name}
	all, err := net.Interfaces()
	if err != nil {
		return Host{}, fmt.Errorf("read the network interfaces: %w", err)
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			return Host{}, fmt.Errorf("read the addresses of %s: %w", i.Name, err)
		}
		found := Interface{Name: i.Name}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
				found.Addresses = append(found.Addresses, p)
			}
		}
		h.Interfaces = append(h.Interfaces, found)
	}
	routes, err := defaultRoutes(root)
	if err != nil {
		return Host{}, err
	}
	slices.SortStableFunc(h.Interfaces, func(a, b Interface) int { return rank(a.Name, routes) - rank(b.Name, routes) })
	return h, nil
}

func rank(name string, routes []string) int {
	if i := slices.Index(routes, name); i >= 0 {
		return i
	}
	return len(routes)
}

// defaultRoutes returns the interfaces of the default routes in the kernel's order, first of IPv4, then of IPv6.
func defaultRoutes(root string) ([]string, error) {
	var names []string
	for _, table := range []struct {
		file                      string
		destination, prefix, name int
	}{{"proc/net/route", 1, 7, 0}, {"proc/net/ipv6_route", 0, 1, 9}} {
		file, err := os.Open(filepath.Join(root, table.file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel does not support the protocol
		}
		if err != nil {
			return nil, fmt.Errorf("read the routes: %w", err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) > max(table.prefix, table.name) && strings.Trim(fields[table.destination]+fields[table.prefix], "0") == "" && fields[table.name] != "lo" {
				names = append(names, fields[table.name])
			}
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return nil, fmt.Errorf("read the routes: %w", err)
		}
	}
	return names, nil
}
