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

// vectorFile is testdata/hostile-requests.yaml: requests as an API server has them, each with its environment and the expected verdict.
// They are data, so that others can use them; new requests come from openssl or a few lines of Go.
type vectorFile struct {
	// Clock, Inventory, Nodes and Authority (of the kubelets) are the environment, unless a vector's own says otherwise.
	Clock     time.Time `json:"clock"`
	Inventory string    `json:"inventory"`
	Nodes     []string  `json:"nodes"`
	Authority string    `json:"authority"`
	// Approved are the requests that the hostile ones are derived from, Controls others that must be approved.
	Approved []vector `json:"approved"`
	Controls []vector `json:"controls"`
	Hostile  []vector `json:"hostile"`
}

type vector struct {
	Name string `json:"name"`
	// Node is the name in the request, or in the one that it is derived from.
	Node string `json:"node"`
	// LeftOut is why others cannot use the request: only its environment is hostile.
	LeftOut string `json:"leftOut,omitempty"`
	// Want is the reason of the verdict.
	Want        string                                    `json:"want"`
	Environment environment                               `json:"world,omitzero"`
	Object      *certificatesv1.CertificateSigningRequest `json:"object"`
}

// environment is the rest of a vector's inputs. NotRead lists what is missing: authority, nodes, approvals, inventory, clock.
type environment struct {
	NotRead         []string            `json:"notRead,omitempty"`
	Nodes           []string            `json:"nodes,omitempty"`
	Approvals       map[string]int      `json:"approvals,omitempty"`
	Now             *time.Time          `json:"now,omitempty"`
	MaxAge          metav1.Duration     `json:"maxAge,omitzero"`
	BootstrapTokens bool                `json:"bootstrapTokens,omitempty"`
	Presented       string              `json:"shown,omitempty"`
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
	// now is the time of all decisions.
	now = vectors().Clock
	// racked is the inventory: new-0 may join, old-0 is there, twice-0 may rejoin, and the others lack something.
	testInventory = sync.OnceValue(func() *inventory.Inventory { return must(inventory.Load([]byte(vectors().Inventory))) })
)

// inputs returns new inputs, which a test may change.
func (v vector) inputs() requests.Inputs {
	env := v.Environment
	in := requests.Inputs{
		Request: v.Object.DeepCopy(), Nodes: sets.New(vectors().Nodes...), Inventory: testInventory(), Approvals: map[string]int{}, Now: now,
		Policy: requests.Policy{MaxAge: env.MaxAge.Duration, BootstrapTokens: env.BootstrapTokens},
	}
	if env.Nodes != nil {
		in.Nodes = sets.New(env.Nodes...)
	}
	maps.Copy(in.Approvals, env.Approvals)
	if env.Now != nil {
		in.Now = *env.Now
	}
	if env.Egress != nil {
		in.EgressIPs = *env.Egress
	}
	if env.Presented != "" {
		in.KubeletCertificate = &requests.KubeletCertificate{Roots: x509.NewCertPool()}
		in.KubeletCertificate.Chain, _ = cert.ParseCertsPEM([]byte(env.Presented)) // one has none
		in.KubeletCertificate.Roots.AppendCertsFromPEM([]byte(vectors().Authority))
	}
	missing := map[string]func(){
		"authority": func() { in.KubeletCertificate.Roots = nil }, "nodes": func() { in.Nodes = nil }, "approvals": func() { in.Approvals = nil },
		"inventory": func() { in.Inventory = nil }, "clock": func() { in.Now = time.Time{} },
	}
	for _, what := range env.NotRead {
		missing[what]()
	}
	return in
}

// vectorOf returns the inputs of the vector with that name.
func vectorOf(name string) requests.Inputs {
	all := slices.Concat(vectors().Approved, vectors().Controls, vectors().Hostile)
	return all[slices.IndexFunc(all, func(v vector) bool { return v.Name == name })].inputs()
}

func joining() requests.Inputs  { return vectorOf("a node that joins") }
func serving() requests.Inputs  { return vectorOf("a node that serves") }
func renewing() requests.Inputs { return vectorOf("a node that renews") }

// verdict decides on the vector, and fails the test if Decide changes its inputs or returns another verdict the next time.
func (v vector) verdict(t *testing.T) requests.Verdict {
	t.Helper()
	before, in := v.inputs(), v.inputs()
	verdict := requests.Decide(in)
	if diff := cmp.Diff(verdict, requests.Decide(in)); diff != "" {
		t.Errorf("%s: another verdict:\n%s", v.Name, diff)
	}
	if !maps.Equal(before.Nodes, in.Nodes) || !maps.Equal(before.Approvals, in.Approvals) || !equality.Semantic.DeepEqual(before.Request, in.Request) {
		t.Errorf("%s: the inputs changed", v.Name)
	}
	return verdict
}

// R-APP-2: nothing is approved by what the request alone contains.
func TestHostile(t *testing.T) {
	if len(vectors().Hostile) < 191 {
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
			t.Errorf("%q is there twice", v.Name)
		}
		names.Insert(v.Name)
	}
}

// R-APP-4: without these approvals a node could not join or would lose its certificate.
func TestApproved(t *testing.T) {
	for _, v := range slices.Concat(vectors().Approved, vectors().Controls) {
		if got := v.verdict(t); !got.Approve || got.Reason != v.Want {
			t.Errorf("%s: approved: %t, %s: %s", v.Name, got.Approve, got.Reason, got.Message)
		}
	}
}

// Every check is needed: without it, a hostile request would be approved.
func TestEveryCheckIsNeeded(t *testing.T) {
	for flow, all := range requests.Checks {
		for i, left := range all {
			others := slices.Delete(slices.Clone(all), i, i+1)
			if !slices.ContainsFunc(vectors().Hostile, func(v vector) bool {
				in := v.inputs()
				content, _ := requests.Parse(in.Request.Spec.Request)
				return content != nil && requests.FlowOf(in.Request) == flow && requests.DecideBy(in, content, others).Approve
			}) {
				t.Errorf("without the check %s of the flow %s nothing more would be approved", left.Name(), flow)
			}
		}
	}
}
