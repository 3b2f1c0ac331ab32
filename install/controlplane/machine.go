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
)

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
