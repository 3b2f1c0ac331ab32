// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var eight = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func window(hours int) *Window {
	return &Window{NotBefore: eight, NotAfter: eight.Add(time.Duration(hours) * time.Hour)}
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// New has the rules of Load. Errors have the index of the value.
func TestNew(t *testing.T) {
	many := Node{Name: "a"}
	for i := range MaxAddresses {
		many.Addresses = append(many.Addresses, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}))
	}
	more := many
	more.DNSNames = []string{"x"}
	type nodes = []Node
	for _, test := range []struct {
		fault string
		nodes nodes
	}{
		{"", nodes{{Name: "a", DNSNames: []string{"a.example.com"}, Addresses: addresses("192.0.2.1", "2001:db8::1"), Window: window(2), Count: 100, Rejoin: true}}},
		{"", nodes{{Name: "a"}, {Name: "b", DNSNames: []string{"b.example.com", "b"}}}},
		{"", nodes{many}},
		{"nodes[0].addresses: there are 65 names and addresses", nodes{more}},
		{`nodes[0].name: "" is not the name of a host`, nodes{{}}},
		{`nodes[0].dnsNames[1]: "*.example.com" is not`, nodes{{Name: "a", DNSNames: []string{"x", "*.example.com"}}}},
		{`nodes[0].dnsNames[1]: "x" is a duplicate`, nodes{{Name: "a", DNSNames: []string{"x", "x"}}}},
		{`nodes[0].dnsNames[0]: "192.0.2.1" is neither`, nodes{{Name: "a", DNSNames: []string{"192.0.2.1"}}}},
		{`nodes[0].addresses[0]: "::ffff:192.0.2.1" is not`, nodes{{Name: "a", Addresses: addresses("::ffff:192.0.2.1")}}},
		{`nodes[0].addresses[1]: "192.0.2.1" is a duplicate`, nodes{{Name: "a", Addresses: addresses("192.0.2.1", "192.0.2.1")}}},
		{"nodes[0].window: notBefore and notAfter must be set", nodes{{Name: "a", Window: window(-1)}}},
		{"nodes[0].window: notBefore and notAfter must be set", nodes{{Name: "a", Window: &Window{NotBefore: eight}}}},
		{"nodes[0].window: notBefore and notAfter must be set", nodes{{Name: "a", Window: &Window{NotAfter: eight}}}},
		{"nodes[0].count: must be", nodes{{Name: "a", Count: -1}}},
		{"nodes[0].count: must be", nodes{{Name: "a", Count: 101}}},
		{`nodes[1].name: "a" already belongs to "a"`, nodes{{Name: "a"}, {Name: "a"}}},
		{`nodes[1].dnsNames[0]: "x" already belongs to "a"`, nodes{{Name: "a", DNSNames: []string{"x"}}, {Name: "b", DNSNames: []string{"x"}}}},
		{`nodes[1].dnsNames[0]: "a" already belongs to "a"`, nodes{{Name: "a"}, {Name: "b", DNSNames: []string{"a"}}}},
		{`nodes[1].addresses[0]: "192.0.2.1" already belongs to "a"`, nodes{{Name: "a", Addresses: addresses("192.0.2.1")}, {Name: "b", Addresses: addresses("192.0.2.1")}}},
	} {
		got, err := New(test.nodes...)
		if valid := test.fault == ""; (err == nil) != valid || !valid && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.fault) || got != nil) {
			t.Errorf("%v, %v; want %q", got, err, test.fault)
		}
		for _, want := range test.nodes {
			if want.Count = max(want.Count, 1); err == nil && !slices.Contains(want.DNSNames, want.Name) {
				want.DNSNames = append(want.DNSNames, want.Name)
			}
			if diff := cmp.Diff(&want, got.Node(want.Name), cmpopts.EquateComparable(netip.Addr{})); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestNewCopies(t *testing.T) {
	node := Node{Name: "a", DNSNames: []string{"x"}, Addresses: addresses("192.0.2.1"), Window: window(2)}
	list, err := New(node)
	if err != nil {
		t.Fatal(err)
	}
	node.DNSNames[0], node.Addresses[0], node.Window.NotAfter = "api.example.com", netip.MustParseAddr("192.0.2.9"), eight.AddDate(1, 0, 0)
	got := list.Node("a")
	if slices.Contains(got.DNSNames, "api.example.com") || slices.Contains(got.Addresses, netip.MustParseAddr("192.0.2.9")) || !got.Window.NotAfter.Equal(eight.Add(2*time.Hour)) {
		t.Errorf("%+v", got)
	}
}

func machine(name, node string, list ...string) Machine {
	m := Machine{Namespace: "m", Name: name, Created: eight, NodeName: node}
	for _, text := range list {
		kind, address, _ := strings.Cut(text, "=")
		m.Addresses = append(m.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: address})
	}
	return m
}

// want has one line for each node: its names and addresses, and when it may join.
func TestFromMachines(t *testing.T) {
	const joins = "joins from 07:59:50 to 10:00:00"
	type machines = []Machine
	deleting := machine("a", "", "InternalDNS=a")
	deleting.Deleting = true
	leaving := machine("a", "a", "InternalDNS=a", "InternalIP=192.0.2.1")
	leaving.Deleting = true
	undated := machine("a", "", "InternalDNS=a")
	undated.Created = time.Time{}
	for _, tt := range []struct {
		name     string
		machines machines
		want     []string
		faults   []string
	}{
		{"none", nil, nil, nil},
		{"a new Machine", machines{machine("a", "", "InternalDNS=a", "InternalIP=192.0.2.1")}, []string{"a [a] [] " + joins}, nil},
		{"two names, in any case and with a dot", machines{machine("a", "", "InternalDNS=A.Example.com.", "InternalDNS=a")},
			[]string{"a [a] [] " + joins, "a.example.com [a.example.com] [] " + joins}, nil},
		{"no InternalDNS address", machines{machine("a", "", "ExternalDNS=a", "Hostname=b", "InternalIP=192.0.2.1")}, nil, nil},
		{"without addresses", machines{machine("a", "")}, nil, nil},
		{"a Machine with its node", machines{machine("a", "a", "InternalDNS=a", "ExternalDNS=a.example.com", "Hostname=host", "InternalIP=192.0.2.1", "ExternalIP=2001:db8::1")},
			[]string{"a [a a.example.com host] [192.0.2.1 2001:db8::1] never joins"}, nil},
		{"a node of another name", machines{machine("a", "node-a", "InternalDNS=a")}, []string{"node-a [a node-a] [] never joins"}, nil},
		{"an address twice", machines{machine("a", "a", "InternalDNS=a", "Hostname=a", "InternalIP=192.0.2.1", "ExternalIP=192.0.2.1")},
			[]string{"a [a] [192.0.2.1] never joins"}, nil},
		{"invalid names and addresses", machines{machine("a", "a", "InternalDNS=kubernetes", "InternalIP=127.0.0.1", "InternalIP=fe80::1", "InternalIP=x", "Hostname=*.a", "InternalIP=192.0.2.1")},
			[]string{"a [a] [192.0.2.1] never joins"}, nil},
		{"a Machine that is being deleted", machines{deleting}, nil, nil},
		{"a Machine that is being deleted, with its node", machines{leaving}, []string{"a [a] [192.0.2.1] never joins"}, nil},
		{"no creation timestamp", machines{undated, machine("b", "", "InternalDNS=b")},
			[]string{"b [b] [] " + joins}, []string{"machines m/a: it has no creation timestamp"}},
		{"two Machines with one name", machines{machine("a", "", "InternalDNS=a"), machine("b", "", "InternalDNS=a"), machine("c", "", "InternalDNS=c")},
			[]string{"c [c] [] " + joins}, []string{`machines m/a: "a" belongs to more than one Machine`, `machines m/b: "a" belongs to more than one Machine`}},
		{"a new Machine with the name of another's node", machines{machine("a", "a", "InternalDNS=a", "InternalIP=192.0.2.1"), machine("b", "", "InternalDNS=a")},
			nil, []string{`machines m/a: "a" belongs to more than one Machine`, `machines m/b: "a" belongs to more than one Machine`}},
		{"a virtual address that moves", machines{
			machine("a", "a", "InternalIP=192.0.2.1", "InternalIP=192.0.2.9"), machine("b", "b", "InternalIP=192.0.2.9", "InternalIP=192.0.2.2")},
			[]string{"a [a] [192.0.2.1] never joins", "b [b] [192.0.2.2] never joins"}, []string{
				"machines m/a: its address 192.0.2.9 belongs to more than one Machine", "machines m/b: its address 192.0.2.9 belongs to more than one Machine"}},
		{"an address of a node and of a new Machine", machines{machine("a", "a", "InternalIP=192.0.2.1"), machine("b", "", "InternalDNS=b", "InternalIP=192.0.2.1")},
			[]string{"a [a] [192.0.2.1] never joins", "b [b] [] " + joins}, nil},
		{"an invalid node name", machines{machine("a", "A", "InternalDNS=a")}, nil,
			[]string{`machines m/a: invalid inventory: nodes[0].name: "A" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, faults := FromMachines(tt.machines...)
			var got, left []string
			for name, n := range list.nodes {
				joins := "never joins"
				if n.Window != nil {
					joins = "joins from " + n.Window.NotBefore.Format(time.TimeOnly) + " to " + n.Window.NotAfter.Format(time.TimeOnly)
				}
				if n.Rejoin || n.Count != 1 {
					t.Errorf("%s: rejoin %t, count %d", name, n.Rejoin, n.Count)
				}
				got = append(got, fmt.Sprint(name, " ", n.DNSNames, " ", n.Addresses, " ", joins))
			}
			slices.Sort(got)
			for _, f := range faults {
				left = append(left, f.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.faults, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineOf(t *testing.T) {
	const metadata = `{"metadata": {"namespace": "m", "name": "a", "creationTimestamp": "2026-11-01T08:00:00Z"DELETED}, "status": STATUS}`
	deleting := machine("a", "")
	deleting.Deleting = true
	for _, tt := range []struct {
		deleted, status string
		want            Machine // without anything if it is invalid
	}{
		{"", `{"nodeRef": {"kind": "Node", "name": "a"}, "addresses": [{"type": "InternalDNS", "address": "a"}, {"type": "InternalIP", "address": "192.0.2.1"}]}`,
			machine("a", "a", "InternalDNS=a", "InternalIP=192.0.2.1")},
		{"", "null", machine("a", "")},
		{`, "deletionTimestamp": "2026-11-01T09:00:00Z"`, "{}", deleting},
		{"", `{"nodeRef": "a"}`, Machine{}}, {"", `{"nodeRef": {"name": 1}}`, Machine{}},
		{"", `{"addresses": "192.0.2.1"}`, Machine{}}, {"", `{"addresses": ["192.0.2.1"]}`, Machine{}},
		{"", `{"addresses": [{"address": "192.0.2.1"}]}`, Machine{}}, {"", `{"addresses": [{"type": "InternalIP"}]}`, Machine{}},
	} {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(strings.NewReplacer("DELETED", tt.deleted, "STATUS", tt.status).Replace(metadata)), &object.Object); err != nil {
			t.Fatal(err)
		}
		got, err := MachineOf(object)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", tt.status, diff)
		}
		if valid := tt.want.Name != ""; valid != (err == nil) || !valid && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "m/a")) {
			t.Errorf("%s: %v", tt.status, err)
		}
	}
	if _, err := MachineOf(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("none: %v", err)
	}
}
