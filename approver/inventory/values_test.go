package inventory_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/approver/inventory"
)

var eight = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func window(hours int) *inventory.Window {
	return &inventory.Window{NotBefore: eight, NotAfter: eight.Add(time.Duration(hours) * time.Hour)}
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// file writes nodes as a file, so that Load can be asked the same.
func file(nodes []inventory.Node) string {
	text := "version: 1\nnodes:\n"
	for _, n := range nodes {
		text += fmt.Sprintf("- name: %q\n", n.Name)
		var list []string
		for _, name := range n.DNSNames {
			list = append(list, fmt.Sprintf("%q", name))
		}
		for _, address := range n.Addresses {
			list = append(list, fmt.Sprintf("%q", address))
		}
		if len(list) > 0 {
			text += "  addresses: [" + strings.Join(list, ", ") + "]\n"
		}
		if n.Window != nil {
			text += fmt.Sprintf("  window: {notBefore: %s, notAfter: %s}\n", n.Window.NotBefore.Format(time.RFC3339), n.Window.NotAfter.Format(time.RFC3339))
		}
		if n.Count != 0 {
			text += fmt.Sprintf("  count: %d\n", n.Count)
		}
		if n.Rejoin {
			text += "  rejoin: true\n"
		}
	}
	return text
}

func manyAddresses(n int) (out []netip.Addr) {
	for i := range n {
		out = append(out, netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}))
	}
	return out
}

// Values are accepted and refused as the same things in a file are, and mean the same.
func TestNew(t *testing.T) {
	type nodes = []inventory.Node
	for _, tt := range []struct {
		name  string
		nodes nodes
		fault string
	}{
		{"whole", nodes{{Name: "a", DNSNames: []string{"a.example.com"}, Addresses: addresses("192.0.2.1", "2001:db8::1"), Window: window(2), Count: 2, Rejoin: true}}, ""},
		{"smallest", nodes{{Name: "a"}, {Name: "b", DNSNames: []string{"b.example.com"}}}, ""},
		{"own name twice", nodes{{Name: "a", DNSNames: []string{"a"}}}, ""},
		{"no name", nodes{{}}, `nodes[0].name: "" is not the name of a host`},
		{"name in upper case", nodes{{Name: "A"}}, `nodes[0].name: "A" is not the name`},
		{"name of a service", nodes{{Name: "kubernetes"}}, "nodes[0].name"},
		{"a wildcard", nodes{{Name: "a", DNSNames: []string{"*.example.com"}}}, "nodes[0].dnsNames"},
		{"a name twice", nodes{{Name: "a", DNSNames: []string{"x", "x"}}}, `nodes[0].dnsNames: "x" is there twice`},
		{"loopback", nodes{{Name: "a", Addresses: addresses("127.0.0.1")}}, "nodes[0].addresses"},
		{"mapped", nodes{{Name: "a", Addresses: addresses("::ffff:192.0.2.1")}}, "nodes[0].addresses"},
		{"an address twice", nodes{{Name: "a", Addresses: addresses("192.0.2.1", "192.0.2.1")}}, `nodes[0].addresses: "192.0.2.1" is there twice`},
		{"as many as may be", nodes{{Name: "a", Addresses: manyAddresses(64)}}, ""},
		{"one too many", nodes{{Name: "a", Addresses: manyAddresses(65)}}, "at most 64"},
		{"a window backwards", nodes{{Name: "a", Window: window(-1)}}, "nodes[0].window"},
		{"a window without a moment", nodes{{Name: "a", Window: window(0)}}, "nodes[0].window"},
		{"a negative count", nodes{{Name: "a", Count: -1}}, "nodes[0].count"},
		{"a large count", nodes{{Name: "a", Count: 100}}, ""},
		{"too large a count", nodes{{Name: "a", Count: 101}}, "nodes[0].count"},
		{"the same node twice", nodes{{Name: "a"}, {Name: "a"}}, `nodes[1]: "a" belongs to "a" already`},
		{"a name in common", nodes{{Name: "a", DNSNames: []string{"x"}}, {Name: "b", DNSNames: []string{"x"}}}, `nodes[1]: "x" belongs to "a" already`},
		{"another's name", nodes{{Name: "a"}, {Name: "b", DNSNames: []string{"a"}}}, `nodes[1]: "a" belongs to "a" already`},
		{"an address in common", nodes{{Name: "a", Addresses: addresses("192.0.2.1")}, {Name: "b", Addresses: addresses("192.0.2.1")}}, `nodes[1]: "192.0.2.1" belongs`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := inventory.New(tt.nodes...)
			loaded, loadErr := inventory.Load([]byte(file(tt.nodes)))
			if (err == nil) != (loadErr == nil) {
				t.Fatalf("New: %v; Load: %v", err, loadErr)
			}
			if (err == nil) != (tt.fault == "") || err != nil && (!errors.Is(err, inventory.ErrInvalid) || !strings.Contains(err.Error(), tt.fault) || got != nil) {
				t.Fatalf("%v, %v; want %q", got, err, tt.fault)
			}
			if diff := cmp.Diff(loaded.Names(), got.Names()); diff != "" {
				t.Errorf("names (-file +values):\n%s", diff)
			}
			for _, name := range got.Names() {
				if diff := cmp.Diff(loaded.Node(name), got.Node(name), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-file +values):\n%s", name, diff)
				}
			}
		})
	}
	for name, w := range map[string]inventory.Window{"half": {NotAfter: eight}, "zero": {}} {
		if _, err := inventory.New(inventory.Node{Name: "a", Window: &w}); !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("a window that is %s: %v", name, err)
		}
	}
}

// No node has a name by which every pod reaches something else, and one that only looks like it is a name.
func TestReservedNames(t *testing.T) {
	for name, reserved := range map[string]bool{
		"localhost": true, "a.localhost": true, "kubernetes": true, "kubernetes.default": true, "openshift": true, "openshift.default": true,
		"kubernetes.default.svc": true, "a.svc": true, "a.b.svc.cluster.local": true,
		"localhost-0": false, "kubernetes-0": false, "openshift.example.com": false, "svc": false, "a.svc.example.com": false, "default": false,
	} {
		if got := inventory.HostProblem(name) != ""; got != reserved {
			t.Errorf("%s: %t (%s)", name, got, inventory.HostProblem(name))
		}
	}
}

// What a caller changes afterwards changes nothing.
func TestNewCopies(t *testing.T) {
	node := inventory.Node{Name: "a", DNSNames: []string{"x"}, Addresses: addresses("192.0.2.1"), Window: window(2)}
	list, err := inventory.New(node)
	if err != nil {
		t.Fatal(err)
	}
	node.DNSNames[0], node.Addresses[0], node.Window.NotAfter = "api.example.com", netip.MustParseAddr("192.0.2.9"), eight.AddDate(1, 0, 0)
	got := list.Node("a")
	if got.HasDNSName("api.example.com") || got.HasAddress(netip.MustParseAddr("192.0.2.9")) || !got.Window.NotAfter.Equal(eight.Add(2*time.Hour)) {
		t.Errorf("%+v", got)
	}
}

func machine(name, node string, list ...string) inventory.Machine {
	m := inventory.Machine{Namespace: "m", Name: name, Created: eight, NodeName: node}
	for _, text := range list {
		kind, address, _ := strings.Cut(text, "=")
		m.Addresses = append(m.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: address})
	}
	return m
}

// What Machines prove, one line for each node: what it may serve by, and when it may join.
func TestFromMachines(t *testing.T) {
	const joins = "joins from 07:59:50 to 10:00:00"
	type machines = []inventory.Machine
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
		{"one that is awaited", machines{machine("a", "", "InternalDNS=a", "InternalIP=192.0.2.1")}, []string{"a [a] [] " + joins}, nil},
		{"two names, in any case and with a dot", machines{machine("a", "", "InternalDNS=A.Example.com.", "InternalDNS=a")}, []string{"a [a] [] " + joins, "a.example.com [a.example.com] [] " + joins}, nil},
		{"other kinds of names let nobody join", machines{machine("a", "", "ExternalDNS=a", "Hostname=b", "InternalIP=192.0.2.1")}, nil, nil},
		{"without addresses", machines{machine("a", "")}, nil, nil},
		{"one that has its node", machines{machine("a", "a", "InternalDNS=a", "ExternalDNS=a.example.com", "Hostname=host", "InternalIP=192.0.2.1", "ExternalIP=2001:db8::1")},
			[]string{"a [a a.example.com host] [192.0.2.1 2001:db8::1] never joins"}, nil},
		{"a node of another name", machines{machine("a", "node-a", "InternalDNS=a")}, []string{"node-a [a node-a] [] never joins"}, nil},
		{"an address twice", machines{machine("a", "a", "InternalDNS=a", "Hostname=a", "InternalIP=192.0.2.1", "ExternalIP=192.0.2.1")}, []string{"a [a] [192.0.2.1] never joins"}, nil},
		{"addresses of no host", machines{machine("a", "a", "InternalDNS=kubernetes", "InternalIP=127.0.0.1", "InternalIP=fe80::1", "InternalIP=x", "Hostname=*.a", "InternalIP=192.0.2.1")},
			[]string{"a [a] [192.0.2.1] never joins"}, nil},
		{"one that is being deleted", machines{deleting}, nil, nil},
		{"one that is being deleted, with its node", machines{leaving}, []string{"a [a] [192.0.2.1] never joins"}, nil},
		{"one that is not dated", machines{undated, machine("b", "", "InternalDNS=b")}, []string{"b [b] [] " + joins}, []string{"machines m/a: it has no creation timestamp"}},
		{"two of one name", machines{machine("a", "", "InternalDNS=a"), machine("b", "", "InternalDNS=a"), machine("c", "", "InternalDNS=c")},
			[]string{"c [c] [] " + joins}, []string{`machines m/a: "a" is of more than one Machine`, `machines m/b: "a" is of more than one Machine`}},
		{"one awaits the name of a node that is there", machines{machine("a", "a", "InternalDNS=a", "InternalIP=192.0.2.1"), machine("b", "", "InternalDNS=a")},
			nil, []string{`machines m/a: "a" is of more than one Machine`, `machines m/b: "a" is of more than one Machine`}},
		{"two of one address", machines{machine("a", "a", "InternalIP=192.0.2.1"), machine("b", "b", "InternalIP=192.0.2.1")},
			nil, []string{`machines m/a: "192.0.2.1" is of more than one Machine`, `machines m/b: "192.0.2.1" is of more than one Machine`}},
		{"a node without a proper name", machines{machine("a", "A", "InternalDNS=a")}, nil, []string{`machines m/a: invalid inventory: nodes[0].name: "A" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, faults := inventory.FromMachines(tt.machines...)
			var got, left []string
			for _, name := range list.Names() {
				n := list.Node(name)
				text := fmt.Sprint(name, " ", n.DNSNames, " ", n.Addresses, " never joins")
				if n.Window != nil {
					text = fmt.Sprint(name, " ", n.DNSNames, " ", n.Addresses, " joins from ", n.Window.NotBefore.Format(time.TimeOnly), " to ", n.Window.NotAfter.Format(time.TimeOnly))
				}
				if n.Rejoin || n.Count != 1 {
					t.Errorf("%s: rejoin %t, count %d", name, n.Rejoin, n.Count)
				}
				got = append(got, text)
			}
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
	object := func(change func(map[string]any)) *unstructured.Unstructured {
		o := map[string]any{
			"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
			"metadata": map[string]any{"namespace": "m", "name": "a", "creationTimestamp": "2026-11-01T08:00:00Z"},
			"status": map[string]any{
				"nodeRef":   map[string]any{"kind": "Node", "name": "a"},
				"addresses": []any{map[string]any{"type": "InternalDNS", "address": "a"}, map[string]any{"type": "InternalIP", "address": "192.0.2.1"}},
			},
		}
		if change != nil {
			change(o)
		}
		return &unstructured.Unstructured{Object: o}
	}
	status := func(o map[string]any) map[string]any { return o["status"].(map[string]any) }
	got, err := inventory.MachineOf(object(nil))
	if diff := cmp.Diff(machine("a", "a", "InternalDNS=a", "InternalIP=192.0.2.1"), got, cmpopts.EquateApproxTime(0)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := inventory.MachineOf(object(func(o map[string]any) { delete(o, "status") })); err != nil || got.NodeName != "" || got.Addresses != nil {
		t.Errorf("a new one: %+v, %v", got, err)
	}
	if got, err := inventory.MachineOf(object(func(o map[string]any) {
		o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-01T09:00:00Z"
	})); err != nil || !got.Deleting {
		t.Errorf("one that is being deleted: %+v, %v", got, err)
	}
	for name, change := range map[string]func(map[string]any){
		"a reference that is text":  func(o map[string]any) { status(o)["nodeRef"] = "a" },
		"a name that is a number":   func(o map[string]any) { status(o)["nodeRef"] = map[string]any{"name": int64(1)} },
		"addresses that are text":   func(o map[string]any) { status(o)["addresses"] = "192.0.2.1" },
		"an address that is text":   func(o map[string]any) { status(o)["addresses"] = []any{"192.0.2.1"} },
		"an address without a type": func(o map[string]any) { status(o)["addresses"] = []any{map[string]any{"address": "192.0.2.1"}} },
		"a type without an address": func(o map[string]any) { status(o)["addresses"] = []any{map[string]any{"type": "InternalIP"}} },
	} {
		if got, err := inventory.MachineOf(object(change)); !errors.Is(err, inventory.ErrInvalid) || !strings.Contains(err.Error(), "m/a") || len(got.Addresses) > 0 || got.NodeName != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := inventory.MachineOf(nil); !errors.Is(err, inventory.ErrInvalid) {
		t.Errorf("none: %v", err)
	}
}
