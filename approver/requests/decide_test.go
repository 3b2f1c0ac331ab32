// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/patch/golden"
)

// The kubelet is called only if nothing else is missing, so a request that fails otherwise causes no call.
func TestNeedsKubeletCertificate(t *testing.T) {
	for name, tt := range map[string]struct {
		in   requests.Inputs
		do   func(*requests.Inputs)
		want bool
	}{
		"a renewal":              {renewing(), func(in *requests.Inputs) { in.KubeletCertificate = nil }, true},
		"another authority":      {renewing(), func(in *requests.Inputs) { in.KubeletCertificate.Roots = x509.NewCertPool() }, true},
		"a foreign group":        {renewing(), func(in *requests.Inputs) { in.KubeletCertificate, in.Request.Spec.Groups = nil, nil }, false},
		"names in the inventory": {serving(), func(*requests.Inputs) {}, false},
		"a new node":             {joining(), func(in *requests.Inputs) { in.Inventory = nil }, false},
		"another signer":         {serving(), func(in *requests.Inputs) { in.Request.Spec.SignerName = "x" }, false},
		"no inputs":              {requests.Inputs{}, func(*requests.Inputs) {}, false},
	} {
		tt.do(&tt.in)
		if got := requests.Decide(tt.in).NeedsKubeletCertificate(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Checks are independent: an existing node is found without an inventory.
func TestNodeExistsWithoutInventory(t *testing.T) {
	in := joining()
	in.Inventory = nil
	in.Nodes.Insert("new-0")
	var missing []string
	for _, finding := range requests.Failed(requests.Decide(in)) {
		missing = append(missing, finding.Reason)
	}
	if diff := cmp.Diff([]string{requests.ReasonNotInInventory, requests.ReasonNodeExists}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestApprovedFor(t *testing.T) {
	type csr = certificatesv1.CertificateSigningRequest
	for name, tt := range map[string]struct {
		from, want string
		do         func(*csr)
	}{
		"approved":                    {"a node that joins", "new-0", func(*csr) {}},
		"approved by a person":        {"RSA with 1024 bits", "new-0", func(r *csr) { r.Spec.Username = "system:admin" }},
		"text before the block":       {"text before the block", "new-0", func(*csr) {}},
		"pending":                     {"a node that joins", "", func(r *csr) { r.Status.Conditions = nil }},
		"denied":                      {"a node that joins", "", func(r *csr) { r.Status.Conditions[0].Type = certificatesv1.CertificateDenied }},
		"failed":                      {"a node that joins", "", func(r *csr) { r.Status.Conditions[0].Type = certificatesv1.CertificateFailed }},
		"a serving certificate":       {"a node that joins", "", func(r *csr) { r.Spec.SignerName = certificatesv1.KubeletServingSignerName }},
		"a renewal of a client":       {"a node that joins", "", func(r *csr) { r.Spec.Username = "system:node:new-0" }},
		"not of a node":               {"a common name without the prefix", "", func(*csr) {}},
		"not PEM":                     {"not PEM", "", func(*csr) {}},
		"no request inside the block": {"garbage in the block", "", func(*csr) {}},
	} {
		request := vectorOf(tt.from).Request
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		tt.do(request)
		if got := requests.ApprovedFor(request); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The authorities that this machine trusts prove nothing.
func TestRootsAreNeverTheMachines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, []byte(vectors().Authority), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	in := renewing()
	in.KubeletCertificate.Roots = nil
	if got := requests.Decide(in); got.Reason != requests.ReasonNamesNotProven {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
}

func TestHalfFilledInputsApproveNothing(t *testing.T) {
	for name, in := range map[string]requests.Inputs{"joining": joining(), "serving": serving(), "renewing": renewing(), "nothing": {}} {
		timeless, undated, none := in, in, in
		timeless.Now, undated.Now, none.Request = time.Time{}, time.Time{}, nil
		if in.Request != nil {
			undated.Request = in.Request.DeepCopy()
			undated.Request.CreationTimestamp = metav1.Time{}
		}
		for _, half := range []requests.Inputs{timeless, undated, none} {
			if v := requests.Decide(half); v.Approve || v.Reason != requests.ReasonInputsIncomplete {
				t.Errorf("%s: %t %s: %s", name, v.Approve, v.Reason, v.Message)
			}
		}
	}
}

// A request of exactly the maximum size is parsed.
func TestSizeLimit(t *testing.T) {
	for text, want := range map[string]string{strings.Repeat("x", 16<<10): requests.ReasonNotPEM, strings.Repeat("x", 16<<10+1): requests.ReasonTooLarge} {
		if _, got := requests.Parse([]byte(text)); got.Reason != want {
			t.Errorf("%d bytes: %s, want %s", len(text), got.Reason, want)
		}
	}
}

func TestGoldenVerdicts(t *testing.T) {
	golden.Test(t, "testdata/verdicts", func(t *testing.T, input fs.FS) map[string]string {
		in := requests.Inputs{Nodes: sets.New[string](), Approvals: map[string]int{}, Now: now}
		for _, node := range golden.Objects[corev1.Node](t, input, "nodes", "") {
			in.Nodes.Insert(node.Name)
		}
		text, err := fs.ReadFile(input, "nodes.yaml")
		if err == nil {
			in.Inventory, err = inventory.Load(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		all := golden.Objects[certificatesv1.CertificateSigningRequest](t, input, "certificatesigningrequests.certificates.k8s.io", "")
		for i := range all {
			in.Approvals[requests.ApprovedFor(&all[i])]++
		}
		verdicts := map[string]requests.Verdict{}
		for i := range all {
			in.Request = &all[i]
			verdicts[all[i].Name] = requests.Decide(in)
		}
		return map[string]string{"want.yaml": string(must(yaml.Marshal(verdicts)))}
	})
}

// A node that joins is approved if it is in the inventory.
func ExampleDecide() {
	csr := joining().Request // as it was read from the cluster
	for _, name := range []string{"new-0", "new-1"} {
		list, err := inventory.Load([]byte(`
version: 1
nodes:
- name: ` + name + `
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T12:00:00Z}
`))
		if err != nil {
			fmt.Println(err)
			return
		}
		verdict := requests.Decide(requests.Inputs{Request: csr, Nodes: sets.New[string](), Approvals: map[string]int{}, Inventory: list, Now: now})
		fmt.Println(verdict.Node, verdict.Approve, verdict.Reason)
		for _, missing := range requests.Failed(verdict) {
			fmt.Println("-", missing.Check+":", missing.Message)
		}
	}
	// Output:
	// new-0 true ProvenByInventory
	// new-0 false NotInInventory
	// - Inventory: "new-0" is not in the inventory
}

func BenchmarkDecide(b *testing.B) {
	for name, in := range map[string]requests.Inputs{"client": joining(), "serving": serving(), "renewal": renewing()} {
		b.Run(name, func(b *testing.B) {
			content, _ := requests.Parse(in.Request.Spec.Request)
			b.ReportAllocs()
			for b.Loop() {
				if !requests.DecideBy(in, content, requests.Checks[requests.FlowOf(in.Request)]).Approve {
					b.Fatal("not approved")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := serving().Request.Spec.Request
	b.ReportAllocs()
	for b.Loop() {
		if _, unreadable := requests.Parse(text); unreadable != nil {
			b.Fatal(unreadable)
		}
	}
}
