// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"crypto/x509"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
)

// vectorFile is testdata/hostile-requests.yaml: requests as stored by an API server, with the other inputs and the
// expected verdict.
type vectorFile struct {
	// The default inputs. Authority is that of the kubelets.
	Clock     time.Time `json:"clock"`
	Inventory string    `json:"inventory"`
	Nodes     []string  `json:"nodes"`
	Authority string    `json:"authority"`
	// Hostile requests are derived from those in Approved. Controls must be approved as well.
	Approved []vector `json:"approved"`
	Controls []vector `json:"controls"`
	Hostile  []vector `json:"hostile"`
}

type vector struct {
	Name string `json:"name"`
	Node string `json:"node"` // the name in the request, or in the one that it is derived from
	// LeftOut is why other tests cannot use the request: only its other inputs are hostile.
	LeftOut     string                                    `json:"leftOut,omitempty"`
	Want        string                                    `json:"want"`
	OtherInputs otherInputs                               `json:"otherInputs,omitzero"`
	Object      *certificatesv1.CertificateSigningRequest `json:"object"`
}

// otherInputs are those besides the request. NotRead lists missing ones: authority, nodes, approvals, inventory, clock.
type otherInputs struct {
	NotRead         []string            `json:"notRead,omitempty"`
	Nodes           []string            `json:"nodes,omitempty"`
	Approvals       map[string]int      `json:"approvals,omitempty"`
	Now             *time.Time          `json:"now,omitempty"`
	MaxAge          metav1.Duration     `json:"maxAge,omitzero"`
	BootstrapTokens bool                `json:"bootstrapTokens,omitempty"`
	Presented       string              `json:"presented,omitempty"`
	Egress          *requests.EgressIPs `json:"egress,omitempty"`
}

var vectors = sync.OnceValue(func() (file vectorFile) {
	text, err := os.ReadFile("testdata/hostile-requests.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &file)
	}
	if err != nil {
		panic(err)
	}
	return file
})

var (
	now = vectors().Clock
	// testInventory: new-0 may join, old-0 exists, twice-0 may rejoin, and for others something is missing.
	testInventory = sync.OnceValue(func() *inventory.Inventory { return must(inventory.Load([]byte(vectors().Inventory))) })
)

func (v vector) inputs() requests.Inputs {
	other := v.OtherInputs
	in := requests.Inputs{
		Request: v.Object.DeepCopy(), Nodes: sets.New(vectors().Nodes...), Inventory: testInventory(), Approvals: map[string]int{}, Now: now,
		Policy: requests.Policy{MaxAge: other.MaxAge.Duration, BootstrapTokens: other.BootstrapTokens},
	}
	if other.Nodes != nil {
		in.Nodes = sets.New(other.Nodes...)
	}
	maps.Copy(in.Approvals, other.Approvals)
	if other.Now != nil {
		in.Now = *other.Now
	}
	if other.Egress != nil {
		in.EgressIPs = *other.Egress
	}
	if other.Presented != "" {
		in.KubeletCertificate = &requests.KubeletCertificate{Roots: x509.NewCertPool()}
		in.KubeletCertificate.Chain, _ = cert.ParseCertsPEM([]byte(other.Presented)) // one has none
		in.KubeletCertificate.Roots.AppendCertsFromPEM([]byte(vectors().Authority))
	}
	missing := map[string]func(){
		"authority": func() { in.KubeletCertificate.Roots = nil }, "nodes": func() { in.Nodes = nil }, "approvals": func() { in.Approvals = nil },
		"inventory": func() { in.Inventory = nil }, "clock": func() { in.Now = time.Time{} },
	}
	for _, what := range other.NotRead {
		missing[what]()
	}
	return in
}

func vectorOf(name string) requests.Inputs {
	all := slices.Concat(vectors().Approved, vectors().Controls, vectors().Hostile)
	return all[slices.IndexFunc(all, func(v vector) bool { return v.Name == name })].inputs()
}

func joining() requests.Inputs  { return vectorOf("a node that joins") }
func serving() requests.Inputs  { return vectorOf("a node that serves") }
func renewing() requests.Inputs { return vectorOf("a node that renews") }

// verdict also checks that Decide keeps its inputs and returns the same verdict again.
func (v vector) verdict(t *testing.T) requests.Verdict {
	t.Helper()
	before, in := v.inputs(), v.inputs()
	verdict := requests.Decide(in)
	if diff := cmp.Diff(verdict, requests.Decide(in)); diff != "" {
		t.Errorf("%s: another verdict the second time:\n%s", v.Name, diff)
	}
	if !maps.Equal(before.Nodes, in.Nodes) || !maps.Equal(before.Approvals, in.Approvals) || !equality.Semantic.DeepEqual(before.Request, in.Request) {
		t.Errorf("%s: the inputs changed", v.Name)
	}
	return verdict
}

// R-APP-2: the content of a request alone never suffices.
func TestHostile(t *testing.T) {
	if len(vectors().Hostile) < 194 {
		t.Errorf("only %d cases", len(vectors().Hostile))
	}
	names := sets.New[string]()
	for _, v := range vectors().Hostile {
		t.Run(v.Name, func(t *testing.T) {
			if got := v.verdict(t); got.Approve || got.Reason != v.Want || got.Message == "" {
				t.Errorf("approved: %t, %s (%s), want %s", got.Approve, got.Reason, got.Message, v.Want)
			}
		})
		if names.Has(v.Name) {
			t.Errorf("%q is a duplicate", v.Name)
		}
		names.Insert(v.Name)
	}
}

// R-APP-4: a node can join and renew its certificate.
func TestApproved(t *testing.T) {
	for _, v := range slices.Concat(vectors().Approved, vectors().Controls) {
		if got := v.verdict(t); !got.Approve || got.Reason != v.Want {
			t.Errorf("%s: approved: %t, %s: %s", v.Name, got.Approve, got.Reason, got.Message)
		}
	}
}

// Without any one check a hostile request would be approved.
func TestEveryCheckIsNeeded(t *testing.T) {
	for flow, all := range requests.Checks {
		for i, left := range all {
			others := slices.Delete(slices.Clone(all), i, i+1)
			if !slices.ContainsFunc(vectors().Hostile, func(v vector) bool {
				in := v.inputs()
				content, _ := requests.Parse(in.Request.Spec.Request)
				return content != nil && requests.FlowOf(in.Request) == flow && requests.DecideBy(in, content, others).Approve
			}) {
				t.Errorf("no hostile request needs the check %s of the flow %s", left.Name(), flow)
			}
		}
	}
}
