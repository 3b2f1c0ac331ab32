// SPDX-License-Identifier: Apache-2.0

// Package inventory lists the nodes that may join, and the names and addresses in their serving certificates.
package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/solonode/sno/approver/internal/plain"
)

const (
	// MaxAddresses limits the names and addresses of one node.
	MaxAddresses = 64
	// MaxCount limits the Count of one node.
	MaxCount  = 100
	maxFaults = 20 // in one error
)

// ErrInvalid is returned for an invalid inventory. The error wraps the first 20 Errors.
var ErrInvalid = errors.New("invalid inventory")

// Error is one error in an inventory.
type Error struct {
	Line, Column int    // counted from 1; 0 for values, and for the whole file
	Field        string // such as nodes[2].window.notAfter; empty for the whole file
	Problem      string
}

func (e Error) Error() string {
	text := e.Problem
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, text)
	}
	return text
}

// Inventory is immutable and safe for concurrent use. A nil Inventory has no nodes.
type Inventory struct {
	nodes map[string]*Node
}

// Node is an entry. Callers must not modify it.
type Node struct {
	Name      string       // of the Node object
	DNSNames  []string     // allowed in the serving certificate, Name included
	Addresses []netip.Addr // allowed in the serving certificate
	Window    *Window      // when the node may join; nil means never
	Count     int          // limit of the approved client requests that the cluster still has; at least 1
	Rejoin    bool         // allows a client certificate although there is a Node of that name
}

// Window is the time from NotBefore up to, but not including, NotAfter.
type Window struct{ NotBefore, NotAfter time.Time }

// Node returns the entry of that name, or nil.
func (i *Inventory) Node(name string) *Node {
	if i == nil {
		return nil
	}
	return i.nodes[name]
}

// New returns an inventory of copies of the nodes, by the rules of Load. Count is 1 by default; a node's own name is
// allowed.
func New(nodes ...Node) (*Inventory, error) {
	b := newBuilder()
	for i, node := range nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		b.add(node, path, indexed(path+".dnsNames", len(node.DNSNames)), indexed(path+".addresses", len(node.Addresses)))
	}
	return b.result()
}

func indexed(path string, n int) []string {
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("%s[%d]", path, i))
	}
	return paths
}

type builder struct {
	inventory Inventory
	owner     map[string]string // the node that has a name or an address
	faults    []Error
	faulty    map[string]bool // fields with a fault
}

func newBuilder() *builder {
	return &builder{owner: map[string]string{}, faulty: map[string]bool{}, inventory: Inventory{nodes: map[string]*Node{}}}
}

func (b *builder) fault(field, problem string, arguments ...any) {
	if !b.faulty[field] {
		b.faulty[field] = true
		b.faults = append(b.faults, Error{Field: field, Problem: fmt.Sprintf(problem, arguments...)})
	}
}

func (b *builder) result() (*Inventory, error) {
	if len(b.faults) == 0 {
		return &b.inventory, nil
	}
	var faults []error
	for _, f := range b.faults[:min(len(b.faults), maxFaults)] {
		faults = append(faults, f)
	}
	return nil, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(faults...))
}

// add adds a copy of a node; path, names and addresses are the fields of the node, its names and its addresses.
func (b *builder) add(node Node, path string, names, addresses []string) {
	node.DNSNames, node.Addresses = slices.Clone(node.DNSNames), slices.Clone(node.Addresses)
	if problem := plain.InvalidHost(node.Name); problem != "" {
		b.fault(path+".name", "%q %s", node.Name, problem)
	}
	b.own(path+".name", node.Name, node.Name)
	for i, name := range node.DNSNames {
		value(b, node.Name, names[i], name, node.DNSNames[:i], plain.InvalidHost)
	}
	for i, address := range node.Addresses {
		value(b, node.Name, addresses[i], address, node.Addresses[:i], plain.InvalidAddress)
	}
	if n := len(node.DNSNames) + len(node.Addresses); n > MaxAddresses {
		b.fault(path+".addresses", "there are %d names and addresses, at most %d are allowed", n, MaxAddresses)
	}
	if node.Window != nil {
		window := *node.Window
		if node.Window = &window; window.NotBefore.IsZero() || !window.NotBefore.Before(window.NotAfter) {
			b.fault(path+".window", "notBefore and notAfter must be set, and notAfter be later")
		}
	}
	if node.Count == 0 {
		node.Count = 1
	}
	if node.Count < 1 || node.Count > MaxCount {
		b.fault(path+".count", "must be a number from 1 to %d", MaxCount)
	}
	if !slices.Contains(node.DNSNames, node.Name) {
		node.DNSNames = append(node.DNSNames, node.Name)
	}
	b.inventory.nodes[node.Name] = &node
}

func value[T comparable](b *builder, node, path string, v T, earlier []T, problemOf func(T) string) {
	switch problem := problemOf(v); {
	case problem != "":
		b.fault(path, "%q %s", fmt.Sprint(v), problem)
	case slices.Contains(earlier, v):
		b.fault(path, "%q is a duplicate", fmt.Sprint(v))
	default:
		b.own(path, fmt.Sprint(v), node)
	}
}

// own refuses a name or an address of two nodes: one could serve as the other.
func (b *builder) own(path, value, node string) {
	if other, taken := b.owner[value]; taken && (other != node || b.inventory.nodes[node] != nil) {
		b.fault(path, "%q already belongs to %q", value, other)
		return
	}
	b.owner[value] = node
}
