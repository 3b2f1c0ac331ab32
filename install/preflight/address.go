// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"time"
)

type link struct {
	Name      string   `json:"ifname"`
	Addresses []leased `json:"addr_info"`
}

type leased struct {
	Address   netip.Addr `json:"local"`
	Scope     string     `json:"scope"`
	Temporary bool       `json:"temporary"`
	Seconds   uint32     `json:"valid_life_time"`
	link      string
}

// address checks that the node keeps its address, which is in certificates of etcd and the API server (R-BIP-19). An
// address without an end is static. For a lease only a person can decide whether the DHCP server reserves it.
func (c *checker) address(ctx context.Context) []Finding {
	switch {
	case !c.Host && len(c.Addresses) > 0:
		return []Finding{ok("%v of the network configuration is in a machine network of %v", c.Addresses, c.MachineNetworks)}
	case !c.Host:
		return []Finding{warning("run preflight --host in the live system, or set the address with --network-config",
			"not known here: an address of the machine has to be in a machine network of %v", c.MachineNetworks)}
	}
	const advice = "install the program ip, of iproute2"
	out, err := c.program(ctx, "ip", "-json", "address", "show", "up")
	if err != nil {
		return []Finding{failed(advice, "%v", err)}
	}
	var links []link
	if err := json.Unmarshal(out, &links); err != nil {
		return []Finding{failed(advice, "ip -json address show up: %v", err)}
	}
	var all []leased
	var has []netip.Addr
	for _, l := range links {
		for _, a := range l.Addresses {
			if a.link = l.Name; a.Scope == "global" {
				all, has = append(all, a), append(has, a.Address)
			}
		}
	}
	var found []Finding
	for _, want := range c.Addresses {
		i := slices.IndexFunc(all, func(a leased) bool { return a.Address == want })
		if i < 0 {
			found = append(found, failed("set this address on the machine, or another in the settings",
				"no interface that is up has the node's address %s; this machine has %v", want, has))
			continue
		}
		found = append(found, c.lasting(all[i]))
	}
	if len(c.Addresses) > 0 {
		return found
	}
	for _, a := range all {
		if !a.Temporary && c.isNodes(a.Address) {
			found = append(found, c.lasting(a))
		}
	}
	if len(found) == 0 {
		found = append(found, failed("change networking.machineNetwork, or the machine's address",
			"no address of the machine is in a machine network of %v; it has %v", c.MachineNetworks, has))
	}
	return found
}

// lasting returns the finding about the lifetime of an address.
func (c *checker) lasting(a leased) Finding {
	static := slices.ContainsFunc(c.Static, func(p netip.Prefix) bool { return p.Addr() == a.Address })
	switch {
	case static:
		return ok("%s of %s is in the network configuration", a.Address, a.link)
	case a.Temporary:
		return failed("use the interface's stable address, or disable its privacy extensions (ipv6.ip6-privacy=0)",
			"%s of %s is a temporary address", a.Address, a.link)
	case a.Seconds == math.MaxUint32: // infinite
		return ok("%s of %s is static", a.Address, a.link)
	}
	return warning("reserve it for this machine in the DHCP server, or make it static with --network-config: with another "+
		"address the certificates of etcd and the API server are invalid",
		"%s of %s is leased, for another %s", a.Address, a.link, time.Duration(a.Seconds)*time.Second)
}
