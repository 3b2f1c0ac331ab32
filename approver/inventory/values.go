package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// New makes an inventory of values, by the rules of Load: names and addresses of one host each, of which no two nodes have one in common,
// and a window that is open for some time. A Count of 0 is 1, and a node may serve by its own name. The error is ErrInvalid, with one
// Fault for everything that is wrong, as far as the first 20. The values are copied.
func New(nodes ...Node) (*Inventory, error) {
	l := &loader{owner: map[string]string{}, inventory: Inventory{nodes: map[string]*Node{}}}
	for i, node := range nodes {
		l.value(fmt.Sprintf("nodes[%d]", i), node)
	}
	if len(l.faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(l.faults[:min(len(l.faults), maxFaults)]...))
	}
	return &l.inventory, nil
}

// value adds one node of New.
func (l *loader) value(path string, node Node) {
	before := len(l.faults)
	fault := func(field, problem string, arguments ...any) {
		l.faults = append(l.faults, Fault{Field: path + field, Problem: fmt.Sprintf(problem, arguments...)})
	}
	node.DNSNames, node.Addresses = slices.Clone(node.DNSNames), slices.Clone(node.Addresses)
	if problem := HostProblem(node.Name); problem != "" {
		fault(".name", "%q %s", node.Name, problem)
	}
	eachOnce(node.DNSNames, HostProblem, func(problem string, arguments ...any) { fault(".dnsNames", problem, arguments...) })
	eachOnce(node.Addresses, AddressProblem, func(problem string, arguments ...any) { fault(".addresses", problem, arguments...) })
	if n := len(node.DNSNames) + len(node.Addresses); n > MaxAddresses {
		fault(".addresses", "there are %d names and addresses, at most %d are allowed", n, MaxAddresses)
	}
	if node.Window != nil {
		window := *node.Window
		if node.Window = &window; window.NotBefore.IsZero() || !window.NotBefore.Before(window.NotAfter) {
			fault(".window", "notAfter must be after notBefore, and both be set")
		}
	}
	if node.Count == 0 {
		node.Count = 1
	}
	if node.Count < 1 || node.Count > MaxCount {
		fault(".count", "this must be a number from 1 to %d", MaxCount)
	}
	own := func(value string) {
		if other, taken := l.owner[value]; taken && (other != node.Name || l.inventory.nodes[node.Name] != nil) {
			fault("", "%q belongs to %q already", value, other)
			return
		}
		l.owner[value] = node.Name
	}
	own(node.Name)
	for _, name := range node.DNSNames {
		own(name)
	}
	for _, address := range node.Addresses {
		own(address.String())
	}
	if len(l.faults) > before {
		return
	}
	if !slices.Contains(node.DNSNames, node.Name) {
		node.DNSNames = append(node.DNSNames, node.Name)
	}
	l.inventory.nodes[node.Name] = &node
}

// parsed is an address as a Machine has it.
func parsed(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(text)
	return address, err == nil && AddressProblem(address) == ""
}

// eachOnce faults values with a problem, and those that are there twice.
func eachOnce[T comparable](values []T, problemOf func(T) string, fault func(problem string, arguments ...any)) {
	for i, value := range values {
		switch problem := problemOf(value); {
		case problem != "":
			fault("%q %s", value, problem)
		case slices.Contains(values[:i], value):
			fault("%q is there twice", value)
		}
	}
}
