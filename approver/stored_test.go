package approver_test

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"os"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/approver"
)

// storedFile has the corpus for whoever approves by this package and cannot import its tests.
const storedFile = "testdata/hostile-requests.yaml"

// storedRequests is what the file has: the clock and the inventory of the corpus, what its requests are made from, and the requests.
type storedRequests struct {
	Clock     time.Time       `json:"clock"`
	Inventory string          `json:"inventory"`
	Approved  []storedRequest `json:"approved"`
	Hostile   []storedRequest `json:"hostile"`
}

// storedRequest is a request as an API server has it, or why it is left out.
type storedRequest struct {
	Name string `json:"name"`
	// Node is the name in the request, or, where there is none that can be read, in the one that it is made from.
	Node    string                                    `json:"node,omitempty"`
	LeftOut string                                    `json:"leftOut,omitempty"`
	Object  *certificatesv1.CertificateSigningRequest `json:"object,omitempty"`
}

// onlyTheWorld is why a case is left out.
const onlyTheWorld = "the request is one that is approved elsewhere; only what is around it is hostile"

// legitimate are what the corpus is made from.
var legitimate = []hostile{
	{"a node that joins", joiner, unchanged, approver.ReasonProvenByInventory},
	{"a node that serves", server, unchanged, approver.ReasonProvenByInventory},
	{"a node that renews", renewer, unchanged, approver.ReasonProvenByCertificate},
}

// TestStoredHostileRequests shows R-APP-4 for the corpus as data: what the installer tries by its own decision (U-INS-14) is
// the corpus, and hostile for the reasons that the corpus has. With -update, what does not agree is made anew.
func TestStoredHostileRequests(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	var file storedRequests
	text, err := os.ReadFile(storedFile)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &file)
	}
	if err != nil && !update {
		t.Fatalf("%v\nrun with -update", err)
	}
	want := storedRequests{
		Clock: now, Inventory: rack, Approved: stored(t, file.Approved, legitimate, false), Hostile: stored(t, file.Hostile, corpus, true),
	}
	if update {
		if text, err = yaml.Marshal(want); err == nil {
			err = os.WriteFile(storedFile, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, file); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun with -update when this is how it should be", storedFile, diff)
	}
}

// stored are the cases in order, each with the request of the file if that agrees, and with a new one otherwise.
func stored(t *testing.T, file []storedRequest, cases []hostile, leaveOut bool) []storedRequest {
	t.Helper()
	have := map[string]storedRequest{}
	for _, s := range file {
		have[s.Name] = s
	}
	list := make([]storedRequest, 0, len(cases))
	for _, tt := range cases {
		if leaveOut && onlyWorld(t, tt) {
			list = append(list, storedRequest{Name: tt.name, LeftOut: onlyTheWorld})
			continue
		}
		from, _ := tt.from()
		before := parsed(t, from)
		a, w := tt.from()
		tt.do(a, w)
		verdict := a.decided(t, w)
		a.csr.TypeMeta = metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"}
		made := storedRequest{Name: tt.name, Node: cmp.Or(verdict.Node, before.Node()), Object: &a.csr}
		if old := have[tt.name]; old.Object != nil {
			if difference := differs(t, old, made, w, tt.want); difference == "" {
				made = old
			} else {
				t.Logf("%s: the request of the file is another one: %s", tt.name, difference)
			}
		}
		list = append(list, made)
	}
	return list
}

// onlyWorld reports whether the request of the case is approved in the world that it comes from, so that nothing about the request
// is hostile.
func onlyWorld(t *testing.T, tt hostile) bool {
	t.Helper()
	a, w := tt.from()
	tt.do(a, w)
	_, untouched := tt.from()
	return a.decided(t, untouched).Approve
}

func parsed(t *testing.T, a *ask) approver.Request {
	t.Helper()
	a.csr.Spec.Request = a.pem(t)
	request, err := approver.Parse(&a.csr)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// differs is how a stored request is another one than one that was just made, apart from its key, and what is decided about it.
func differs(t *testing.T, old, made storedRequest, w *world, reason string) string {
	t.Helper()
	outside := func(s storedRequest) storedRequest {
		s.Object = s.Object.DeepCopy()
		s.Object.Spec.Request = nil
		return s
	}
	// The file has UTC, and no empty lists.
	text, err := yaml.Marshal(outside(made))
	if err != nil {
		t.Fatal(err)
	}
	var read storedRequest
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(read, outside(old)); diff != "" {
		return diff
	}
	if diff := gocmp.Diff(signedParts(made), signedParts(old)); diff != "" {
		return diff
	}
	verdict := approver.Verdict{}
	if request, err := approver.Parse(old.Object); err != nil {
		verdict = approver.Unreadable(err)
	} else {
		w.Request = request
		verdict = approver.Decide(w.Inputs)
	}
	return gocmp.Diff(reason, verdict.Reason)
}

// contents is what is signed, without the key.
type contents struct {
	Version    int
	Subject    []byte
	Extensions []pkix.Extension
	Key        x509.PublicKeyAlgorithm
	Signature  x509.SignatureAlgorithm
}

// signedParts is nil for what cannot be read.
func signedParts(s storedRequest) *contents {
	block, _ := pem.Decode(s.Object.Spec.Request)
	if block == nil {
		return nil
	}
	inner, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	return &contents{inner.Version, inner.RawSubject, inner.Extensions, inner.PublicKeyAlgorithm, inner.SignatureAlgorithm}
}
