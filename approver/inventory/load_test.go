// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

const good = `# what is in the rack
version: 1
nodes:
- name: worker-0
  addresses:
  - worker-0.example.com
  - 192.0.2.10
  - "2001:db8::10"
  window:
    notBefore: 2026-11-01T08:00:00Z
    notAfter: "2026-11-01T14:00:00+02:00"
  count: 2
  rejoin: true
- name: worker-1.example.com
`

func TestLoad(t *testing.T) {
	got, err := Load([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.nodes) != 2 {
		t.Errorf("%d nodes", len(got.nodes))
	}
	want := &Node{
		Name: "worker-0", DNSNames: []string{"worker-0.example.com", "worker-0"},
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")},
		Window:    &Window{NotBefore: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC), NotAfter: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)},
		Count:     2, Rejoin: true,
	}
	if diff := cmp.Diff(want, got.Node("worker-0"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("a whole entry (-want +got):\n%s", diff)
	}
	want = &Node{Name: "worker-1.example.com", DNSNames: []string{"worker-1.example.com"}, Count: 1}
	if diff := cmp.Diff(want, got.Node("worker-1.example.com"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("the smallest entry (-want +got):\n%s", diff)
	}
	var none *Inventory
	for _, n := range []*Node{got.Node("worker-2"), none.Node("worker-0")} {
		if n != nil {
			t.Errorf("an unknown node: %v", n)
		}
	}
}

// nodes returns a file with nodes; each argument is a name and further lines.
func nodes(list ...string) string {
	return "version: 1\nnodes:\n- name: " + strings.Join(list, "\n- name: ") + "\n"
}

func with(lines ...string) string {
	return nodes("worker-0\n  " + strings.Join(lines, "\n  "))
}

const (
	notHost    = " is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard"
	notAddress = " is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone"
	isReserved = " is reserved for the cluster or the machine itself; no node may serve by it"
	neither    = " is neither an IP address nor the name of a host"
	noTime     = " is not a time like 2026-01-31T08:00:00Z"
	noString   = "must be a string; quote a value that YAML reads as another type"
	day        = "2026-11-02T08:00:00Z"
)

// Errors have a position. onlyLoader marks those that a schema cannot find.
var faults = []struct {
	name, text, want string
	onlyLoader       bool
}{
	{"empty", "", "the file is empty; it needs version and nodes", false},
	{"only a comment", "# nothing\n", "the file is empty; it needs version and nodes", false},
	{"no YAML", "version: 1\nnodes: [\n", "line 2, column 1: not YAML: did not find expected node content", true},
	{"a list", "- version: 1\n", "line 1, column 1: must be a mapping", false},
	{"two documents", good + "---\nversion: 1\n", "line 15, column 1: there is a second document; only one is allowed", true},
	{"no version", "nodes:\n- name: a\n", "line 1, column 1: version: the field is missing", false},
	{"another version", "version: 2\nnodes:\n- name: a\n", "line 1, column 10: version: the version must be 1", false},
	{"version in quotes", "version: \"1\"\nnodes:\n- name: a\n", "line 1, column 10: version: the version must be 1", false},
	{"no nodes", "version: 1\n", "line 1, column 1: nodes: the field is missing", false},
	{"nodes is nothing", "version: 1\nnodes:\n", "line 2, column 7: nodes: must be a list", false},
	{"no node", "version: 1\nnodes: []\n", "line 2, column 8: nodes: the list is empty", false},
	{"a node that is text", "version: 1\nnodes: [a]\n", "line 2, column 9: nodes[0]: must be a mapping", false},
	{"unknown field", with("adresses: [a]"), "line 4, column 3: nodes[0].adresses: unknown field", false},
	{"unknown field at the top", "version: 1\nnode: []\nnodes:\n- name: a\n", "line 2, column 1: node: unknown field", false},
	{"a field twice", with("count: 1", "count: 2"), "line 5, column 3: nodes[0].count: duplicate field", true},
	{"a mapping as a key", "version: 1\n[nodes]: x\nnodes:\n- name: a\n", "line 2, column 1: unknown field", true},
	{"alias as a key", "version: &nodes 1\n*nodes : [{name: a}]\n", "line 2, column 1: nodes: unknown field", true},
	{"anchor as a key", "version: 1\nnodes:\n- {&name name: a, *name : b}\n", "line 3, column 19: nodes[0].name: unknown field", true},
	{"merge key", with("<<: {count: 2}"), "line 4, column 3: nodes[0].<<: unknown field", true},
	{"alias", "version: 1\nnodes:\n- &a\n  name: a\n- *a\n", "line 5, column 3: nodes[1]: must be a mapping", true},
	{"no name", "version: 1\nnodes:\n- count: 1\n", "line 3, column 3: nodes[0].name: the field is missing", false},
	{"name that is a number", nodes("10"), "line 3, column 9: nodes[0].name: " + noString, false},
	{"name in upper case", nodes("Worker"), `line 3, column 9: nodes[0].name: "Worker"` + notHost, false},
	{"name with the node's prefix", nodes("system:node:a"), `line 3, column 9: nodes[0].name: "system:node:a"` + notHost, false},
	{"name of the API server", nodes("kubernetes"), `line 3, column 9: nodes[0].name: "kubernetes"` + isReserved, false},
	{"name twice", nodes("a", "a"), `line 4, column 9: nodes[1].name: "a" already belongs to "a"`, true},
	{"name that is another's address", nodes("a\n  addresses: [b]", "b"), `line 5, column 9: nodes[1].name: "b" already belongs to "a"`, true},
	{"address of two nodes", nodes("a\n  addresses: [192.0.2.1]", "b\n  addresses: [192.0.2.1]"),
		`line 6, column 15: nodes[1].addresses[0]: "192.0.2.1" already belongs to "a"`, true},
	{"the same address in another notation", nodes("a\n  addresses: ['2001:db8::1']", "b\n  addresses: ['2001:DB8:0::1']"),
		`line 6, column 15: nodes[1].addresses[0]: "2001:db8::1" already belongs to "a"`, true},
	{"addresses that is text", with("addresses: 192.0.2.1"), "line 4, column 14: nodes[0].addresses: must be a list", false},
	{"no address", with("addresses: []"), "line 4, column 14: nodes[0].addresses: the list is empty", false},
	{"address twice", with("addresses: [192.0.2.1, 192.0.2.1]"), `line 4, column 26: nodes[0].addresses[1]: "192.0.2.1" is a duplicate`, false},
	{"name twice among the addresses", with("addresses: [a, a]"), `line 4, column 18: nodes[0].addresses[1]: "a" is a duplicate`, false},
	{"mistyped address", with("addresses: [192.0.2.300]"), `line 4, column 15: nodes[0].addresses[0]: "192.0.2.300"` + neither, false},
	{"address with a leading zero", with("addresses: [192.0.2.010]"), `line 4, column 15: nodes[0].addresses[0]: "192.0.2.010"` + neither, false},
	{"network", with("addresses: [192.0.2.0/24]"), `line 4, column 15: nodes[0].addresses[0]: "192.0.2.0/24"` + notHost, false},
	{"wildcard", with("addresses: ['*.example.com']"), `line 4, column 15: nodes[0].addresses[0]: "*.example.com"` + notHost, false},
	{"look-alike", with("addresses: ['wоrker.example.com']"), `line 4, column 15: nodes[0].addresses[0]: "wоrker.example.com"` + notHost, false},
	{"loopback", with("addresses: [127.0.0.1]"), `line 4, column 15: nodes[0].addresses[0]: "127.0.0.1"` + notAddress, true},
	{"IPv4-mapped", with("addresses: ['::ffff:192.0.2.1']"), `line 4, column 15: nodes[0].addresses[0]: "::ffff:192.0.2.1"` + notAddress, false},
	{"zone", with("addresses: ['2001:db8::1%eth0']"), `line 4, column 15: nodes[0].addresses[0]: "2001:db8::1%eth0"` + notAddress, false},
	{"name of a Service", with("addresses: [kubernetes.default.svc]"),
		`line 4, column 15: nodes[0].addresses[0]: "kubernetes.default.svc"` + isReserved, false},
	{"localhost", with("addresses: [localhost]"), `line 4, column 15: nodes[0].addresses[0]: "localhost"` + isReserved, false},
	{"window that is text", with("window: always"), "line 4, column 11: nodes[0].window: must be a mapping", false},
	{"half a window", with("window:", "  notBefore: 2026-11-01T08:00:00Z"),
		"line 5, column 5: nodes[0].window.notAfter: the field is missing", false},
	{"window that ends before it begins", with("window:", "  notBefore: 2026-11-01T08:00:00Z", "  notAfter: 2026-11-01T08:00:00Z"),
		"line 5, column 5: nodes[0].window: notBefore and notAfter must be set, and notAfter be later", true},
	{"time without a zone", with("window:", "  notBefore: 2026-11-01T08:00:00", "  notAfter: "+day),
		`line 5, column 16: nodes[0].window.notBefore: "2026-11-01T08:00:00"` + noTime, false},
	{"a day", with("window:", "  notBefore: 2026-11-01", "  notAfter: "+day),
		`line 5, column 16: nodes[0].window.notBefore: "2026-11-01"` + noTime, false},
	{"a day that there is not", with("window:", "  notBefore: 2026-02-30T08:00:00Z", "  notAfter: "+day),
		`line 5, column 16: nodes[0].window.notBefore: "2026-02-30T08:00:00Z"` + noTime, true},
	{"count of none", with("count: 0"), "line 4, column 10: nodes[0].count: must be a number from 1 to 100", false},
	{"count without end", with("count: 101"), "line 4, column 10: nodes[0].count: must be a number from 1 to 100", false},
	{"count that is text", with("count: many"), "line 4, column 10: nodes[0].count: must be a number from 1 to 100", false},
	{"rejoin that is text", with("rejoin: 'yes'"), "line 4, column 11: nodes[0].rejoin: must be true or false", false},
	{"several faults", with("count: 0", "rejoin: maybe"),
		"line 4, column 10: nodes[0].count: must be a number from 1 to 100\nline 5, column 11: nodes[0].rejoin: must be true or false", false},
}

func TestErrors(t *testing.T) {
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load([]byte(tt.text))
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "invalid inventory: "); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			var fault Error
			if !errors.As(err, &fault) {
				t.Error("the error wraps no Error")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for text, lines := range map[string]int{
		strings.Repeat("#", MaxBytes+1):                               1,
		"version: 1\nnodes:\n" + strings.Repeat("- name: '*'\n", 100): 20,
	} {
		_, err := Load([]byte(text))
		if !errors.Is(err, ErrInvalid) || strings.Count(err.Error(), "\n")+1 != lines {
			t.Errorf("%.30s: %v", text, err)
		}
	}
}

// The schema accepts and refuses the same as Load, except for onlyLoader.
func TestSchemaAgrees(t *testing.T) {
	var schema spec.Schema
	text, err := os.ReadFile("schema.json")
	if err == nil {
		err = schema.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	accepts := func(text string) bool {
		var value any
		return yaml.Unmarshal([]byte(text), &value) == nil && validator.Validate(value).IsValid()
	}
	for _, text := range []string{good, with(), with("addresses: [192.0.2.1, '::1:2', a.b-c.d]"), with("count: 100")} {
		if _, err := Load([]byte(text)); err != nil {
			t.Errorf("refused by Load: %v\n%s", err, text)
		}
		if !accepts(text) {
			t.Errorf("refused by the schema:\n%s", text)
		}
	}
	for _, tt := range faults {
		if accepts(tt.text) && !tt.onlyLoader {
			t.Errorf("%s: the schema accepts what Load refuses", tt.name)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(good)
	for _, tt := range faults {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Load([]byte(text))
		if (err == nil) != (got != nil) {
			t.Fatal("want either an inventory or an error")
		}
		if got == nil {
			return
		}
		owner := map[string]string{}
		for name, node := range got.nodes {
			for _, n := range node.values()[1:] {
				if other, taken := owner[n]; taken || strings.ContainsAny(n, "*% ") || strings.ToLower(n) != n {
					t.Errorf("%q belongs to %s and %s", n, name, other)
				}
				owner[n] = name
			}
		}
	})
}
