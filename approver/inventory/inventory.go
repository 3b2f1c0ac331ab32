// Package inventory is the second source of truth of the outside approver: a file, written by a person or by whoever racks the
// machines, that says which nodes may join and by which names and addresses they serve.
package inventory

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Inventory is a file that was read. It is never changed, and safe for concurrent use. nil is an inventory without nodes.
type Inventory struct {
	nodes map[string]*Node
}

// Node is one entry. It is only read.
type Node struct {
	// Name is the name of the Node object, in lower case.
	Name string
	// DNSNames are the names that the node's serving certificate may have, its own among them; Addresses the IP addresses, none of
	// them an IPv4-mapped IPv6 address.
	DNSNames  []string
	Addresses []netip.Addr
	// Window is when the node may join; nil means never. It does not limit serving certificates.
	Window *Window
	// Count is how many client certificates may be approved for the name, as far as the cluster still has the requests; at least 1.
	Count int
	// Rejoin tells that the node may get a client certificate although there is a Node of its name.
	Rejoin bool
}

// Window is a time from NotBefore up to, but not including, NotAfter.
type Window struct {
	NotBefore, NotAfter time.Time
}

// Node is the entry of that name, or nil.
func (i *Inventory) Node(name string) *Node {
	if i == nil {
		return nil
	}
	return i.nodes[name]
}

// Names lists the names of all nodes, sorted.
func (i *Inventory) Names() []string {
	if i == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(i.nodes))
}

// HasDNSName tells whether the node may serve by that name, HasAddress whether by that address. nil has none.
func (n *Node) HasDNSName(name string) bool { return n != nil && slices.Contains(n.DNSNames, name) }

// HasAddress tells whether the node may serve by that address.
func (n *Node) HasAddress(address netip.Addr) bool {
	return n != nil && slices.Contains(n.Addresses, address)
}
