package inventory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Machine says that its node may join for as long as the stock approver lets it: from MachineSkew before the Machine was made until
// MachineWindow after.
const (
	MachineSkew   = 10 * time.Second
	MachineWindow = 2 * time.Hour
)

// Machine is what counts of a Machine of machine.openshift.io or of cluster.x-k8s.io.
type Machine struct {
	Namespace, Name string
	// Created is metadata.creationTimestamp. A Machine without it is left out.
	Created time.Time
	// Deleting is true while the Machine is being deleted: no node joins by it any more.
	Deleting bool
	// Addresses are status.addresses.
	Addresses []corev1.NodeAddress
	// NodeName is status.nodeRef.name; empty before the node has joined.
	NodeName string
}

// MachineOf reads a Machine of either kind and of any version, as a lister has it. A field of the wrong type is ErrInvalid.
func MachineOf(object *unstructured.Unstructured) (Machine, error) {
	if object == nil {
		return Machine{}, fmt.Errorf("%w: no Machine", ErrInvalid)
	}
	m := Machine{Namespace: object.GetNamespace(), Name: object.GetName(), Created: object.GetCreationTimestamp().Time,
		Deleting: object.GetDeletionTimestamp() != nil}
	failed := func(err error) (Machine, error) {
		return Machine{}, fmt.Errorf("%w: Machine %s/%s: %w", ErrInvalid, m.Namespace, m.Name, err)
	}
	var err error
	if m.NodeName, _, err = unstructured.NestedString(object.Object, "status", "nodeRef", "name"); err != nil {
		return failed(err)
	}
	addresses, _, err := unstructured.NestedFieldNoCopy(object.Object, "status", "addresses")
	if err != nil {
		return failed(err)
	}
	list, ok := addresses.([]any)
	if addresses != nil && !ok {
		return failed(fmt.Errorf("status.addresses is a %T", addresses))
	}
	for i, element := range list {
		address, _ := element.(map[string]any)
		kind, hasKind := address["type"].(string)
		value, hasValue := address["address"].(string)
		if !hasKind || !hasValue {
			return failed(fmt.Errorf("status.addresses[%d] has no type or no address", i))
		}
		m.Addresses = append(m.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: value})
	}
	return m, nil
}

// FromMachines makes an inventory of Machines, as the stock approver reads them: a node of which a Machine has the name as an InternalDNS
// address may join while the Machine is young and has no node yet; once it has one, that node may serve by the Machine's addresses, and no
// other joins by it. A node does not rejoin.
//
// A Machine that cannot be relied on is left out, with a Fault for each: one that is not dated, and every one that has a name or an
// address in common with another, because which of them has it is not known. The others count all the same. Addresses that no node may
// serve by, such as link-local ones, are not those of a host and are passed over.
func FromMachines(machines ...Machine) (*Inventory, []Fault) {
	var faults []Fault
	owners := map[string]int{}
	entries := make([][]Node, len(machines))
	for i, m := range machines {
		entries[i] = m.nodes()
		own := map[string]bool{}
		for _, node := range entries[i] {
			own[node.Name] = true
			for _, name := range node.DNSNames {
				own[name] = true
			}
			for _, address := range node.Addresses {
				own[address.String()] = true
			}
		}
		for value := range own {
			owners[value]++
		}
	}
	shared := func(node Node) string {
		for _, value := range append([]string{node.Name}, node.DNSNames...) {
			if owners[value] > 1 {
				return value
			}
		}
		for _, address := range node.Addresses {
			if owners[address.String()] > 1 {
				return address.String()
			}
		}
		return ""
	}
	made := &Inventory{nodes: map[string]*Node{}}
	for i, m := range machines {
		left := func(problem string, arguments ...any) {
			faults = append(faults, Fault{Field: "machines " + m.Namespace + "/" + m.Name, Problem: fmt.Sprintf(problem, arguments...)})
		}
		if m.Created.IsZero() {
			left("it has no creation timestamp")
			continue
		}
		for _, node := range entries[i] {
			if value := shared(node); value != "" {
				left("%q is of more than one Machine", value)
				continue
			}
			one, err := New(node)
			if err != nil {
				left("%v", err)
				continue
			}
			made.nodes[node.Name] = one.nodes[node.Name]
		}
	}
	return made, faults
}

// nodes are the entries of one Machine: the node that it has, or those as which one may join.
func (m Machine) nodes() []Node {
	names, internal, node := []string{}, []string{}, Node{Name: m.NodeName}
	for _, a := range m.Addresses {
		name := strings.ToLower(strings.TrimSuffix(a.Address, "."))
		plain := HostProblem(name) == ""
		switch a.Type {
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName:
			if plain && !slices.Contains(names, name) {
				names = append(names, name)
			}
			if plain && a.Type == corev1.NodeInternalDNS && !slices.Contains(internal, name) {
				internal = append(internal, name)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip, ok := parsed(a.Address); ok && !slices.Contains(node.Addresses, ip) {
				node.Addresses = append(node.Addresses, ip)
			}
		}
	}
	if m.NodeName != "" {
		node.DNSNames = names
		return []Node{node}
	}
	if m.Deleting {
		return nil
	}
	var awaited []Node
	for _, name := range internal {
		awaited = append(awaited, Node{Name: name, Window: &Window{NotBefore: m.Created.Add(-MachineSkew), NotAfter: m.Created.Add(MachineWindow)}})
	}
	return awaited
}
