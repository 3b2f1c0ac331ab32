// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// dns resolves the four records of R-BIP-20. A node that serves its own DNS (U-INS-21) has no record before its first
// start.
func (c *checker) dns(ctx context.Context) []Finding {
	// Only a wildcard record resolves a random name.
	app := "sno-preflight-" + strings.ToLower(rand.Text())
	names := []string{"api." + c.Domain, "api-int." + c.Domain, app + ".apps." + c.Domain}
	if c.Name != "" {
		names = append(names, c.host())
	}
	found := make([]Finding, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() {
			record := strings.Replace(name, app, "*", 1)
			found[i] = c.record(ctx, name, record)
		})
	}
	wait.Wait()
	if c.Name == "" {
		found = append(found, warning("set the node's name, or check again on the machine: the record is HOSTNAME."+c.Domain,
			"the record of the host was not resolved: the node's name is unknown"))
	}
	return found
}

func (c *checker) host() string {
	if strings.Contains(c.Name, ".") {
		return strings.TrimSuffix(c.Name, ".")
	}
	return c.Name + "." + c.Domain
}

func (c *checker) record(ctx context.Context, name, record string) Finding {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	// The trailing dot disables the search list of this machine.
	addresses, err := c.Resolver.LookupNetIP(ctx, "ip", name+".")
	var fault *net.DNSError
	switch {
	case errors.As(err, &fault) && fault.IsNotFound:
		return failed("add an A or AAAA record "+record+" with the node's address", "%s: no such record", record)
	case err != nil:
		return failed("check that the DNS servers in /etc/resolv.conf answer, and check again", "%s: %v", record, err)
	}
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	strays := slices.DeleteFunc(slices.Clone(addresses), c.isNodes)
	switch {
	case len(strays) == 0:
		return ok("%s: %v", record, addresses)
	case c.Name != "" && record == c.host():
		return failed("correct the record: it has the node's address and no other", "%s: not the node's: %v", record, strays)
	}
	return warning("correct the record, unless these are of a load balancer that sends to the node",
		"%s: not the node's: %v", record, strays)
}

func (c *checker) isNodes(a netip.Addr) bool {
	if len(c.Addresses) > 0 {
		return slices.Contains(c.Addresses, a)
	}
	in := func(n netip.Prefix) bool { return n.Contains(a) }
	return len(c.MachineNetworks) == 0 || slices.ContainsFunc(c.MachineNetworks, in)
}
