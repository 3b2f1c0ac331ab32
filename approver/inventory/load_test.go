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
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver/inventory"
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
	got, err := inventory.Load([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"worker-0", "worker-1.example.com"}, got.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := &inventory.Node{
		Name: "worker-0", DNSNames: []string{"worker-0.example.com", "worker-0"},
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")},
		Window:    &inventory.Window{NotBefore: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC), NotAfter: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)},
		Count:     2, Rejoin: true,
	}
	if diff := cmp.Diff(want, got.Node("worker-0"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("a whole entry (-want +got):\n%s", diff)
	}
	want = &inventory.Node{Name: "worker-1.example.com", DNSNames: []string{"worker-1.example.com"}, Count: 1}
	if diff := cmp.Diff(want, got.Node("worker-1.example.com"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("the smallest entry (-want +got):\n%s", diff)
	}
	if n := got.Node("worker-2"); n != nil {
		t.Errorf("a node that is not in it: %v", n)
	}
}

func TestNone(t *testing.T) {
	var none *inventory.Inventory
	if none.Node("worker-0") != nil || none.Names() != nil {
		t.Error("no inventory has a node")
	}
	if none.Node("worker-0").HasDNSName("worker-0") || none.Node("worker-0").HasAddress(netip.MustParseAddr("192.0.2.1")) {
		t.Error("no node has a name")
	}
}

// with is a file with one node that has these lines.
func with(lines ...string) string {
	return "version: 1\nnodes:\n- name: worker-0\n  " + strings.Join(lines, "\n  ") + "\n"
}

// Every fault says where it is. A schema cannot know all of them.
var faults = []struct {
	name, text, want string
	// beyond tells that only the loader knows.
	beyond bool
}{
	{name: "empty", text: "", want: "the file is empty; it needs version and nodes"},
	{name: "only a comment", text: "# nothing\n", want: "the file is empty; it needs version and nodes"},
	{name: "no YAML", text: "version: 1\nnodes: [\n", want: "line 2, column 1: not YAML: did not find expected node content", beyond: true},
	{name: "a list", text: "- version: 1\n", want: "line 1, column 1: this must be a mapping"},
	{name: "two documents", text: good + "---\nversion: 1\n", want: "line 15, column 1: there is a second document; an inventory is one", beyond: true},
	{name: "no version", text: "nodes:\n- name: a\n", want: "line 1, column 1: version: the field is missing"},
	{name: "another version", text: "version: 2\nnodes:\n- name: a\n", want: "line 1, column 10: version: the version must be 1"},
	{name: "version in quotes", text: "version: \"1\"\nnodes:\n- name: a\n", want: "line 1, column 10: version: the version must be 1"},
	{name: "no nodes", text: "version: 1\n", want: "line 1, column 1: nodes: the field is missing"},
	{name: "nodes is nothing", text: "version: 1\nnodes:\n", want: "line 2, column 7: nodes: this must be a list"},
	{name: "no node", text: "version: 1\nnodes: []\n", want: "line 2, column 8: nodes: the list is empty"},
	{name: "a node that is text", text: "version: 1\nnodes: [a]\n", want: "line 2, column 9: nodes[0]: this must be a mapping"},
	{name: "unknown field", text: with("adresses: [a]"), want: "line 4, column 3: nodes[0].adresses: there is no such field"},
	{name: "unknown field at the top", text: "version: 1\nnode: []\nnodes:\n- name: a\n", want: "line 2, column 1: node: there is no such field"},
	{name: "a field twice", text: with("count: 1", "count: 2"), want: "line 5, column 3: nodes[0].count: the field is there twice", beyond: true},
	{name: "merge key", text: with("<<: {count: 2}"), want: "line 4, column 3: nodes[0].<<: there is no such field", beyond: true},
	{name: "alias", text: "version: 1\nnodes:\n- &a\n  name: a\n- *a\n", want: "line 5, column 3: nodes[1]: this must be a mapping", beyond: true},
	{name: "no name", text: "version: 1\nnodes:\n- count: 1\n", want: "line 3, column 3: nodes[0].name: the field is missing"},
	{name: "name that is a number", text: "version: 1\nnodes:\n- name: 10\n", want: "line 3, column 9: nodes[0].name: this must be a string; put it in quotes when it looks like something else"},
	{name: "name in upper case", text: "version: 1\nnodes:\n- name: Worker\n", want: `line 3, column 9: nodes[0].name: "Worker" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`},
	{name: "name with the node's prefix", text: "version: 1\nnodes:\n- name: system:node:a\n", want: `line 3, column 9: nodes[0].name: "system:node:a" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`},
	{name: "name of the API server", text: "version: 1\nnodes:\n- name: kubernetes\n", want: `line 3, column 9: nodes[0].name: "kubernetes" is a name by which every pod reaches something else; no node may serve by it`},
	{name: "name twice", text: "version: 1\nnodes:\n- name: a\n- name: a\n", want: `line 4, column 3: nodes[1].name: "a" belongs to "a" already`, beyond: true},
	{name: "name that is another's address", text: "version: 1\nnodes:\n- name: a\n  addresses: [b]\n- name: b\n", want: `line 5, column 3: nodes[1].name: "b" belongs to "a" already`, beyond: true},
	{name: "address of two nodes", text: "version: 1\nnodes:\n- name: a\n  addresses: [192.0.2.1]\n- name: b\n  addresses: [192.0.2.1]\n", want: `line 5, column 3: nodes[1].addresses: "192.0.2.1" belongs to "a" already`, beyond: true},
	{name: "the same address in another notation", text: "version: 1\nnodes:\n- name: a\n  addresses: ['2001:db8::1']\n- name: b\n  addresses: ['2001:DB8:0::1']\n", want: `line 5, column 3: nodes[1].addresses: "2001:db8::1" belongs to "a" already`, beyond: true},
	{name: "addresses that is text", text: with("addresses: 192.0.2.1"), want: "line 4, column 14: nodes[0].addresses: this must be a list"},
	{name: "no address", text: with("addresses: []"), want: "line 4, column 14: nodes[0].addresses: the list is empty"},
	{name: "address twice", text: with("addresses: [192.0.2.1, 192.0.2.1]"), want: `line 4, column 26: nodes[0].addresses[1]: "192.0.2.1" is there twice`},
	{name: "name twice among the addresses", text: with("addresses: [a, a]"), want: `line 4, column 18: nodes[0].addresses[1]: "a" is there twice`},
	{name: "mistyped address", text: with("addresses: [192.0.2.300]"), want: `line 4, column 15: nodes[0].addresses[0]: "192.0.2.300" is neither an IP address nor the name of a host`},
	{name: "address with a leading zero", text: with("addresses: [192.0.2.010]"), want: `line 4, column 15: nodes[0].addresses[0]: "192.0.2.010" is neither an IP address nor the name of a host`},
	{name: "network", text: with("addresses: [192.0.2.0/24]"), want: `line 4, column 15: nodes[0].addresses[0]: "192.0.2.0/24" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`},
	{name: "wildcard", text: with("addresses: ['*.example.com']"), want: `line 4, column 15: nodes[0].addresses[0]: "*.example.com" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`},
	{name: "look-alike", text: with("addresses: ['wоrker.example.com']"), want: `line 4, column 15: nodes[0].addresses[0]: "wоrker.example.com" is not the name of a host: letters in lower case, digits, dashes and dots, no wildcard`},
	{name: "loopback", text: with("addresses: [127.0.0.1]"), want: `line 4, column 15: nodes[0].addresses[0]: "127.0.0.1" is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone`, beyond: true},
	{name: "IPv4-mapped", text: with("addresses: ['::ffff:192.0.2.1']"), want: `line 4, column 15: nodes[0].addresses[0]: "::ffff:192.0.2.1" is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone`},
	{name: "zone", text: with("addresses: ['2001:db8::1%eth0']"), want: `line 4, column 15: nodes[0].addresses[0]: "2001:db8::1%eth0" is not the address of one host: no loopback, link-local, multicast or IPv4-mapped address, and no zone`},
	{name: "name of a Service", text: with("addresses: [kubernetes.default.svc]"), want: `line 4, column 15: nodes[0].addresses[0]: "kubernetes.default.svc" is a name by which every pod reaches something else; no node may serve by it`},
	{name: "localhost", text: with("addresses: [localhost]"), want: `line 4, column 15: nodes[0].addresses[0]: "localhost" is a name by which every pod reaches something else; no node may serve by it`},
	{name: "window that is text", text: with("window: always"), want: "line 4, column 11: nodes[0].window: this must be a mapping"},
	{name: "half a window", text: with("window:", "  notBefore: 2026-11-01T08:00:00Z"), want: "line 5, column 5: nodes[0].window.notAfter: the field is missing"},
	{name: "window that ends before it begins", text: with("window:", "  notBefore: 2026-11-01T08:00:00Z", "  notAfter: 2026-11-01T08:00:00Z"), want: "line 5, column 5: nodes[0].window: notAfter must be after notBefore", beyond: true},
	{name: "time without a zone", text: with("window:", "  notBefore: 2026-11-01T08:00:00", "  notAfter: 2026-11-02T08:00:00Z"), want: `line 5, column 16: nodes[0].window.notBefore: "2026-11-01T08:00:00" is no time; write it like 2026-01-31T08:00:00Z`},
	{name: "a day", text: with("window:", "  notBefore: 2026-11-01", "  notAfter: 2026-11-02T08:00:00Z"), want: `line 5, column 16: nodes[0].window.notBefore: "2026-11-01" is no time; write it like 2026-01-31T08:00:00Z`},
	{name: "a day that there is not", text: with("window:", "  notBefore: 2026-02-30T08:00:00Z", "  notAfter: 2026-11-02T08:00:00Z"), want: `line 5, column 16: nodes[0].window.notBefore: "2026-02-30T08:00:00Z" is no time; write it like 2026-01-31T08:00:00Z`, beyond: true},
	{name: "count of none", text: with("count: 0"), want: "line 4, column 10: nodes[0].count: this must be a number from 1 to 100"},
	{name: "count without end", text: with("count: 101"), want: "line 4, column 10: nodes[0].count: this must be a number from 1 to 100"},
	{name: "count that is text", text: with("count: many"), want: "line 4, column 10: nodes[0].count: this must be a number from 1 to 100"},
	{name: "rejoin that is text", text: with("rejoin: 'yes'"), want: "line 4, column 11: nodes[0].rejoin: this must be true or false"},
	{name: "several faults", text: with("count: 0", "rejoin: maybe"), want: "line 4, column 10: nodes[0].count: this must be a number from 1 to 100\nline 5, column 11: nodes[0].rejoin: this must be true or false"},
}

func TestFaults(t *testing.T) {
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			_, err := inventory.Load([]byte(tt.text))
			if !errors.Is(err, inventory.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "invalid inventory: "); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			var fault inventory.Fault
			if !errors.As(err, &fault) {
				t.Error("no Fault in the error")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	long := "version: 1\nnodes:\n- name: a\n  addresses:\n"
	for i := range inventory.MaxAddresses + 1 {
		long += fmt.Sprintf("  - a%d\n", i)
	}
	many := "version: 1\nnodes:\n" + strings.Repeat("- name: '*'\n", 100)
	for name, tt := range map[string]struct {
		text  string
		lines int
	}{
		"a file that is too long": {strings.Repeat("#", inventory.MaxBytes+1), 1},
		"too many addresses":      {long, 1},
		"too many faults":         {many, 20},
	} {
		_, err := inventory.Load([]byte(tt.text))
		if !errors.Is(err, inventory.ErrInvalid) || strings.Count(err.Error(), "\n")+1 != tt.lines {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schema accepts what Load accepts, and refuses what Load refuses, but for what a schema cannot say.
func TestSchemaAgrees(t *testing.T) {
	var schema spec.Schema
	if err := schema.UnmarshalJSON(inventory.Schema()); err != nil {
		t.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	accepts := func(text string) bool {
		var value any
		return yaml.Unmarshal([]byte(text), &value) == nil && validator.Validate(value).IsValid()
	}
	for _, text := range []string{good, with(), with("addresses: [192.0.2.1, '::1:2', a.b-c.d]"), with("count: 100")} {
		if _, err := inventory.Load([]byte(text)); err != nil {
			t.Errorf("refused by Load: %v\n%s", err, text)
		}
		if !accepts(text) {
			t.Errorf("refused by the schema:\n%s", text)
		}
	}
	for _, tt := range faults {
		if accepts(tt.text) && !tt.beyond {
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
		got, err := inventory.Load([]byte(text))
		if (err == nil) != (got != nil) {
			t.Fatal("an inventory or an error")
		}
		owner := map[string]string{}
		for _, name := range got.Names() {
			node := got.Node(name)
			names := node.DNSNames
			for _, address := range node.Addresses {
				names = append(names, address.String())
			}
			for _, n := range names {
				if other, taken := owner[n]; taken || strings.ContainsAny(n, "*% ") || strings.ToLower(n) != n {
					t.Errorf("%q of %s, and of %s", n, name, other)
				}
				owner[n] = name
			}
		}
	})
}

// A key that is no text is no field, whatever it looks like.
func TestMappingKeys(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\n[nodes]: x\nnodes:\n- name: a\n":        "invalid inventory: line 2, column 1: there is no such field",
		"version: &nodes 1\n*nodes : [{name: a}]\n":          "invalid inventory: line 2, column 1: nodes: there is no such field",
		"version: 1\nnodes:\n- {&name name: a, *name : b}\n": "invalid inventory: line 3, column 19: nodes[0].name: there is no such field",
	} {
		if _, err := inventory.Load([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
