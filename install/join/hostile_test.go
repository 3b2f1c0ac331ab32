// SPDX-License-Identifier: Apache-2.0

package join

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/phase"
)

type stored struct {
	Clock     time.Time       `json:"clock"`
	Inventory string          `json:"inventory"`
	Nodes     []string        `json:"nodes"`
	Authority string          `json:"authority"`
	Approved  []storedRequest `json:"approved"`
	Controls  []storedRequest `json:"controls"`
	Hostile   []storedRequest `json:"hostile"`
}

type storedRequest struct {
	Name        string                                    `json:"name"`
	Node        string                                    `json:"node"`
	LeftOut     string                                    `json:"leftOut"`
	Want        string                                    `json:"want"`
	OtherInputs any                                       `json:"otherInputs"`
	Object      *certificatesv1.CertificateSigningRequest `json:"object"`
}

type tried struct {
	request, host string
	there         bool
}

// allowed are the requests that are hostile for the approver but not for the installer.
var allowed = map[tried]string{
	{"a node that is there", "old-0", false}:                         "on this host the Node does not exist",
	{"a name that is not in the inventory", "new-1", false}:          "the inventory has the host that runs the command",
	{"an address of a node as its name", "new-0.example.com", false}: "this is the name of the host itself",
	{"a node that has no window", "never-0", false}:                  "the host that is installed has one",
	{"a window that has closed", "late-0", false}:                    "the installer's window is open while the command runs",
	{"a request that is two hours old", "old-0", true}:               "a kubelet that was off makes no other request for a day",
}

// What the approver does not approve, the installer does not approve either, on any host, with or without its Node
// (R-APP-4, U-INS-14).
func TestStoredHostileRequests(t *testing.T) {
	text := fixture.Must(os.ReadFile("../../approver/requests/testdata/hostile-requests.yaml"))
	var file stored
	fixture.NoError(t, yaml.UnmarshalStrict(text, &file))
	hosts := hostsOf(t, file)
	// Positive control: the valid requests that the hostile ones are derived from are approved.
	want := map[tried]bool{
		{"a node that joins", "new-0", false}: true, {"a node that serves", "old-0", true}: true, {"a node that renews", "other-0", true}: true,
	}
	fixture.Equal(t, "valid requests", want, approvedOn(t, hosts, file.Approved), cmp.AllowUnexported(tried{}))
	hostile := slices.DeleteFunc(file.Hostile, func(r storedRequest) bool { return r.LeftOut != "" })
	want = map[tried]bool{}
	for of := range allowed {
		want[of] = true
	}
	fixture.Equal(t, "approved", want, approvedOn(t, hosts, hostile), cmp.AllowUnexported(tried{}))
	t.Logf("%d hostile requests on hosts of %d names, with and without a Node", len(hostile), len(hosts))
}

func approvedOn(t *testing.T, hosts map[string]Options, requests []storedRequest) map[tried]bool {
	t.Helper()
	approved := map[tried]bool{}
	for name, o := range hosts {
		for _, there := range []bool{false, true} {
			nodes := sets.New[string]()
			if there {
				nodes.Insert(name)
			}
			known, err := o.inventory(o.Since, false, 0)
			if errors.Is(err, phase.ErrInput) {
				continue // not a valid name of a host
			}
			fixture.NoError(t, err)
			for _, request := range requests {
				if o.decide(request.Object, known, nodes, map[string]int{}).Approve {
					approved[tried{request.Name, name, there}] = true
				}
			}
		}
	}
	return approved
}

// hostsOf returns options for every host in a request, with the addresses and the window of the inventory.
func hostsOf(t *testing.T, file stored) map[string]Options {
	t.Helper()
	known := fixture.Must(inventory.Load([]byte(file.Inventory)))
	// This host is in no inventory: the approver proves its address by its serving certificate.
	addresses := map[string][]netip.Addr{"other-0": {netip.MustParseAddr("192.0.2.40")}}
	hosts := map[string]Options{}
	names := []string{"twice-0"} // in the inventory only
	for _, request := range slices.Concat(file.Approved, file.Hostile) {
		if request.LeftOut == "" {
			names = append(names, request.Node)
		}
	}
	for _, name := range names {
		o := Options{
			Name: name, Addresses: addresses[name], Since: file.Clock.Add(-time.Hour), Now: func() time.Time { return file.Clock },
		}
		if node := known.Node(name); node != nil {
			o.Addresses = node.Addresses
			if node.Window != nil {
				o.Since = node.Window.NotBefore
			}
		}
		hosts[name] = o
	}
	return hosts
}
