// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/internal/plain"
)

// MachineSkew and MachineWindow bound when the node of a Machine may join, from before to after its creation, as in the
// stock approver.
const (
	MachineSkew   = 10 * time.Second
	MachineWindow = 2 * time.Hour
)

// Machine is the relevant part of a Machine of machine.openshift.io or cluster.x-k8s.io.
type Machine struct {
	Namespace, Name string
	Created         time.Time
	Deleting        bool // its node may not join any more
	Addresses       []corev1.NodeAddress
	NodeName        string // status.nodeRef.name; empty before the node has joined
}

// MachineOf reads a Machine of either kind and of any version. A field of the wrong type is an ErrInvalid.
func MachineOf(object *unstructured.Unstructured) (Machine, error) {
	if object == nil {
		return Machine{}, fmt.Errorf("%w: no Machine", ErrInvalid)
	}
	var read struct {
		Status struct {
			NodeRef   corev1.ObjectReference `json:"nodeRef"`
			Addresses []corev1.NodeAddress   `json:"addresses"`
		} `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read)
	for i, address := range read.Status.Addresses {
		if err == nil && (address.Type == "" || address.Address == "") {
			err = fmt.Errorf("status.addresses[%d] has no type or no address", i)
		}
	}
	if err != nil {
		return Machine{}, fmt.Errorf("%w: Machine %s/%s: %w", ErrInvalid, object.GetNamespace(), object.GetName(), err)
	}
	return Machine{Namespace: object.GetNamespace(), Name: object.GetName(), Created: object.GetCreationTimestamp().Time,
		Deleting: object.GetDeletionTimestamp() != nil, NodeName: read.Status.NodeRef.Name, Addresses: read.Status.Addresses}, nil
}

// FromMachines returns an inventory by the rules of the stock approver: a node may join by an InternalDNS name of a
// recent Machine without a node, and serve by the addresses of its Machine. No node may rejoin. A Machine without a
// creation timestamp, or with a name of another Machine, is left out with an Error. An address of several Machines, for
// example a virtual one that moves, is left out of all of them, also with an Error: it proves nothing about either.
func FromMachines(machines ...Machine) (*Inventory, []Error) {
	owners := map[string]int{}
	for _, m := range machines {
		own := sets.New[string]()
		for _, node := range m.nodes() {
			own.Insert(node.values()...)
		}
		for value := range own {
			owners[value]++
		}
	}
	var faults []Error
	result := &Inventory{nodes: map[string]*Node{}}
	for _, m := range machines {
		leaveOut := func(problem string) {
			faults = append(faults, Error{Field: "machines " + m.Namespace + "/" + m.Name, Problem: problem})
		}
		if m.Created.IsZero() {
			leaveOut("it has no creation timestamp")
			continue
		}
		for _, node := range m.nodes() {
			names := append([]string{node.Name}, node.DNSNames...)
			shared := slices.IndexFunc(names, func(name string) bool { return owners[name] > 1 })
			if shared >= 0 {
				leaveOut(fmt.Sprintf("%q belongs to more than one Machine", names[shared]))
				continue
			}
			node.Addresses = slices.DeleteFunc(node.Addresses, func(address netip.Addr) bool {
				moves := owners[address.String()] > 1
				if moves {
					leaveOut(fmt.Sprintf("its address %s belongs to more than one Machine", address))
				}
				return moves
			})
			if one, err := New(node); err != nil {
				leaveOut(err.Error())
			} else {
				result.nodes[node.Name] = one.nodes[node.Name]
			}
		}
	}
	return result, faults
}

func (n Node) values() []string {
	list := append([]string{n.Name}, n.DNSNames...)
	for _, address := range n.Addresses {
		list = append(list, address.String())
	}
	return list
}

// nodes returns the entry of the Machine's node, or one for each name by which it may join.
func (m Machine) nodes() []Node {
	node, internal := Node{Name: m.NodeName}, []string{}
	for _, a := range m.Addresses {
		switch a.Type {
		case corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName:
			name := strings.ToLower(strings.TrimSuffix(a.Address, "."))
			if plain.InvalidHost(name) != "" {
				continue
			}
			node.DNSNames = appendNew(node.DNSNames, name)
			if a.Type == corev1.NodeInternalDNS {
				internal = appendNew(internal, name)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip, err := netip.ParseAddr(a.Address); err == nil && plain.InvalidAddress(ip) == "" {
				node.Addresses = appendNew(node.Addresses, ip)
			}
		}
	}
	if m.NodeName != "" {
		return []Node{node}
	}
	if m.Deleting {
		return nil
	}
	var joining []Node
	for _, name := range internal {
		joining = append(joining, Node{Name: name, Window: &Window{NotBefore: m.Created.Add(-MachineSkew), NotAfter: m.Created.Add(MachineWindow)}})
	}
	return joining
}

func appendNew[T comparable](list []T, value T) []T {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
