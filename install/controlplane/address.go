// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net/netip"
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
