// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrNodeAddress is in the error of a node without an address in the machine networks.
var ErrNodeAddress = errors.New("no address of the node is in a machine network")

// NodeAddresses is what is known of a node's addresses before it boots.
type NodeAddresses struct {
	// Given are the chosen ones; empty means those of the machine in the machine networks.
	Given []netip.Addr
	// Static are the addresses in the network configuration.
	Static []netip.Prefix
	// Automatic4 and Automatic6 mean that the machine may have other addresses, from DHCP or router advertisements.
	Automatic4, Automatic6 bool
}

// CheckNode returns an error if no address of the node can be in a machine network, for each address family of the
// Services: etcd and the API server need one (R-BIP-19).
func (n Networking) CheckNode(a NodeAddresses) error {
	var errs []error
	for _, address := range a.Given {
		automatic := a.Automatic6
		if address.Is4() {
			automatic = a.Automatic4
		}
		switch {
		case !n.isMachine(address):
			errs = append(errs, fmt.Errorf("--node-ip %s: %w; networking.machineNetwork has %v", address, ErrNodeAddress, n.MachineNetwork))
		case !automatic && !slices.ContainsFunc(a.Static, func(p netip.Prefix) bool { return p.Addr() == address }):
			errs = append(errs, fmt.Errorf("--node-ip %s: %w: the network configuration does not set it", address, ErrNodeAddress))
		}
	}
	for _, family := range []struct {
		is4, automatic bool
		name           string
	}{{true, a.Automatic4, "IPv4"}, {false, a.Automatic6, "IPv6"}} {
		ofFamily := func(address netip.Addr) bool { return address.Is4() == family.is4 }
		switch {
		case !slices.ContainsFunc(n.ServiceNetwork, func(p netip.Prefix) bool { return ofFamily(p.Addr()) }):
		case len(a.Given) > 0:
			if !slices.ContainsFunc(a.Given, ofFamily) {
				errs = append(errs, fmt.Errorf("--node-ip: %w: Services have addresses of %s too, so give one of that family", ErrNodeAddress, family.name))
			}
		case !family.automatic && !slices.ContainsFunc(a.Static, func(p netip.Prefix) bool { return ofFamily(p.Addr()) && n.isMachine(p.Addr()) }):
			errs = append(errs, fmt.Errorf("the network configuration: %w of %s; it sets %v, and networking.machineNetwork has %v", ErrNodeAddress, family.name, a.Static, n.MachineNetwork))
		}
	}
	return errors.Join(errs...)
}

func (n Networking) isMachine(address netip.Addr) bool {
	return slices.ContainsFunc(n.MachineNetwork, func(p netip.Prefix) bool { return p.Contains(address) })
}
