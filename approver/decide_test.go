package approver_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
)

func egress(node string, ips ...string) approver.Egress {
	e, err := approver.EgressOf(node, ips...)
	if err != nil {
		panic(err)
	}
	return e
}

func TestEgressOf(t *testing.T) {
	for name, of := range map[string][]string{"no node": {"", "192.0.2.1"}, "no address": {"old-0", "192.0.2"}, "a range": {"old-0", "192.0.2.0/24"}, "nothing": {"old-0", ""}} {
		if e, err := approver.EgressOf(of[0], of[1:]...); !errors.Is(err, approver.ErrInputs) || len(e.IPs) > 0 {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}

func unchanged(*ask, *world) {}

func withKey(name string) func(*ask, *world) { return func(a *ask, _ *world) { a.key = key(name) } }

// TestApproved shows R-APP-4: what must be approved, or a node could not join or would lose its certificate.
func TestApproved(t *testing.T) {
	for _, tt := range []struct {
		name string
		from func() (*ask, *world)
		do   func(a *ask, w *world)
		want string
	}{
		{"a new node", joiner, unchanged, approver.ReasonProvenByInventory},
		{"a new node of an older release, which also wants to encrypt", joiner, func(a *ask, _ *world) {
			a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}, approver.ReasonProvenByInventory},
		{"groups and usages in another order", joiner, func(a *ask, _ *world) { slices.Reverse(a.csr.Spec.Groups); slices.Reverse(a.csr.Spec.Usages) }, approver.ReasonProvenByInventory},
		{"RSA with 2048 bits", joiner, withKey("rsa2048"), approver.ReasonProvenByInventory},
		{"P-384", joiner, withKey("p384"), approver.ReasonProvenByInventory},
		{"P-521", joiner, withKey("p521"), approver.ReasonProvenByInventory},
		{"a bootstrap token where one may", joiner, func(a *ask, w *world) {
			w.Policy.BootstrapTokens = true
			a.csr.Spec.Username, a.csr.Spec.Groups = "system:bootstrap:0a1b2c", kubeadmGroups
		}, approver.ReasonProvenByInventory},
		{"the bootstrapper where tokens may as well", joiner, func(_ *ask, w *world) { w.Policy.BootstrapTokens = true }, approver.ReasonProvenByInventory},
		{"a node that joins again", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("twice-0") }, approver.ReasonProvenByInventory},
		{"a node that may have two", joiner, func(a *ask, w *world) { a.template.Subject = nodeSubject("twice-0"); w.Approvals["twice-0"] = 1 }, approver.ReasonProvenByInventory},
		{"the first moment of the window", joiner, func(a *ask, w *world) {
			w.Now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
			a.csr.CreationTimestamp = metav1.NewTime(w.Now)
		}, approver.ReasonProvenByInventory},
		{"the last moment of the window", joiner, func(a *ask, w *world) {
			w.Now = time.Date(2026, 11, 20, 11, 59, 59, 0, time.UTC)
			a.csr.CreationTimestamp = metav1.NewTime(w.Now.Add(-time.Minute))
		}, approver.ReasonProvenByInventory},
		{"a request as old as it may be", server, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour)) }, approver.ReasonProvenByInventory},
		{"an older one, where a person says so", server, func(a *ask, w *world) {
			a.csr.CreationTimestamp = metav1.NewTime(now.Add(-20 * time.Hour))
			w.Policy.MaxAge = 24 * time.Hour
		}, approver.ReasonProvenByInventory},
		{"a clock that is a little behind", joiner, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.NewTime(now.Add(4 * time.Minute)) }, approver.ReasonProvenByInventory},
		{"a clock as far behind as it may be", joiner, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.NewTime(now.Add(5 * time.Minute)) }, approver.ReasonProvenByInventory},
		{"the first serving certificate", server, unchanged, approver.ReasonProvenByInventory},
		{"the first serving certificate, with all names", server, func(a *ask, _ *world) {
			a.names("old-0", "old-0.example.com", "192.0.2.20")
		}, approver.ReasonProvenByInventory},
		{"a serving certificate after the window", server, func(a *ask, w *world) {
			w.Now = time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)
			a.csr.CreationTimestamp = metav1.NewTime(w.Now)
		}, approver.ReasonProvenByInventory},
		{"a serving certificate for some of the names", server, func(a *ask, _ *world) { a.names("192.0.2.20") }, approver.ReasonProvenByInventory},
		{"a serving certificate with an RSA key", server, func(a *ask, _ *world) {
			a.key = key("rsa2048")
			a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}, approver.ReasonProvenByInventory},
		{"IPv6", func() (*ask, *world) { return serving("new-0", "new-0", "2001:db8::10") }, func(_ *ask, w *world) { w.Nodes.Insert("new-0") }, approver.ReasonProvenByInventory},
		{"a renewal", renewer, unchanged, approver.ReasonProvenByCertificate},
		{"a renewal by way of an authority in between", renewer, func(a *ask, w *world) {
			between := &authority{key: key("between")}
			template := *cluster().certificate
			template.RawSubject, template.Subject.CommonName = nil, "between"
			between.certificate = certificate(&template, cluster().certificate, between.key.Public(), cluster().key)
			w.Shown = shown(between, a.template.Subject, a.template.DNSNames, a.template.IPAddresses, nil)
			w.Shown.Chain = append(w.Shown.Chain, between.certificate)
		}, approver.ReasonProvenByCertificate},
		{"a renewal for fewer names, because an address is gone", renewer, func(a *ask, _ *world) { a.names("other-0") }, approver.ReasonProvenByCertificate},
		{"one name in the inventory, the other in the certificate", server, func(a *ask, w *world) {
			a.names("old-0.example.com", "192.0.2.40")
			w.Shown = shown(cluster(), nodeSubject("old-0"), nil, a.template.IPAddresses, nil)
		}, approver.ReasonProvenByCertificate},
		{"a renewal with an egress IP", renewer, func(a *ask, w *world) {
			a.names("other-0", "192.0.2.40", "198.51.100.7", "2001:db8::7")
			w.Egress = egress("other-0", "198.51.100.7", "2001:db8::7", "198.51.100.8")
		}, approver.ReasonProvenByCertificate},
		{"a renewal with an egress IP instead of an address", renewer, func(a *ask, w *world) {
			a.names("other-0", "198.51.100.7")
			w.Egress = egress("other-0", "198.51.100.7")
		}, approver.ReasonProvenByCertificate},
		{"a renewal without names, with an egress IP", func() (*ask, *world) { return renewing("other-0", "192.0.2.40") }, func(a *ask, w *world) {
			a.names("192.0.2.40", "198.51.100.7")
			w.Egress = egress("other-0", "198.51.100.7")
		}, approver.ReasonProvenByCertificate},
		{"the inventory, whatever the kubelet shows", server, func(_ *ask, w *world) {
			w.Shown = &approver.Shown{Chain: []*x509.Certificate{cluster().certificate}}
		}, approver.ReasonProvenByInventory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, w := tt.from()
			tt.do(a, w)
			got := a.decided(t, w)
			if !got.Approve || got.Reason != tt.want {
				t.Errorf("%t, %s: %s", got.Approve, got.Reason, got.Message)
			}
		})
	}
}

// A verdict shows all checks, also those behind the first that was not content.
func TestFindings(t *testing.T) {
	a, w := joiner()
	a.csr.Spec.Username, w.Approvals["new-0"] = "system:admin", 7
	got := a.decided(t, w)
	if got.Approve || got.Reason != approver.ReasonRequestorWrong || got.Flow != approver.ClientFlow || got.Node != "new-0" {
		t.Errorf("%+v", got)
	}
	var names, missing []string
	for _, f := range got.Findings {
		names = append(names, f.Check)
		if f.OK != (f.Reason == "") || f.Message == "" {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range got.Missing() {
		missing = append(missing, f.Reason)
	}
	var want []string
	for _, check := range approver.Checks(approver.ClientFlow) {
		want = append(want, check.Name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{approver.ReasonRequestorWrong, approver.ReasonCountUsedUp}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// No check relies on another one: a node that is there is found also where the inventory does not know it.
func TestNodeThereWithoutInventory(t *testing.T) {
	a, w := joiner()
	w.Inventory = nil
	w.Nodes.Insert("new-0")
	var missing []string
	for _, f := range a.decided(t, w).Missing() {
		missing = append(missing, f.Reason)
	}
	if diff := cmp.Diff([]string{approver.ReasonNotInInventory, approver.ReasonNodeExists}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// The kubelet is dialled only when nothing else is missing: nobody makes us dial for a request that could not be approved anyway.
func TestWantsCertificate(t *testing.T) {
	for _, tt := range []struct {
		name string
		from func() (*ask, *world)
		do   func(a *ask, w *world)
		want bool
	}{
		{"a renewal", renewer, func(_ *ask, w *world) { w.Shown = nil }, true},
		{"a renewal with a certificate of another authority", renewer, func(_ *ask, w *world) { w.Shown.Roots = x509.NewCertPool() }, true},
		{"a renewal for a foreign group", renewer, func(a *ask, w *world) { w.Shown = nil; a.csr.Spec.Groups = nil }, false},
		{"names in the inventory", server, unchanged, false},
		{"a new node", joiner, func(_ *ask, w *world) { w.Inventory = nil }, false},
		{"another signer", server, func(a *ask, _ *world) { a.csr.Spec.SignerName = "x" }, false},
	} {
		a, w := tt.from()
		tt.do(a, w)
		if got := a.decided(t, w).WantsCertificate(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if (approver.Verdict{}).WantsCertificate() {
		t.Error("the zero verdict wants one")
	}
}

// Deciding changes nothing, and says the same twice.
func TestDecideIsPure(t *testing.T) {
	for _, tt := range append(slices.Clone(corpus), hostile{"a new node", joiner, unchanged, ""}, hostile{"a renewal", renewer, unchanged, ""}) {
		a, w := tt.from()
		tt.do(a, w)
		first := a.decided(t, w)
		nodes, groups := w.Nodes.Clone(), strings.Join(a.csr.Spec.Groups, " ")
		if w.Nodes == nil {
			nodes = sets.Set[string](nil)
		}
		if w.Request.X509 != nil {
			if diff := cmp.Diff(first, approver.Decide(w.Inputs)); diff != "" && len(first.Findings) > 0 {
				t.Errorf("%s: another verdict (-first +second):\n%s", tt.name, diff)
			}
		}
		if !nodes.Equal(w.Nodes) || groups != strings.Join(a.csr.Spec.Groups, " ") {
			t.Errorf("%s: the inputs changed", tt.name)
		}
	}
}

func TestApprovedFor(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(a *ask)
		want string
	}{
		{"approved", func(*ask) {}, "new-0"},
		{"approved by somebody, for a request that we would not approve", func(a *ask) { a.csr.Spec.Username = "system:admin"; a.key = key("rsa1024") }, "new-0"},
		{"text before the block", func(a *ask) { a.send = func(der []byte) []byte { return append([]byte("x\n"), requestPEM(der)...) } }, "new-0"},
		{"waiting", func(a *ask) { a.csr.Status.Conditions = nil }, ""},
		{"denied", func(a *ask) { a.csr.Status.Conditions[0].Type = certificatesv1.CertificateDenied }, ""},
		{"failed", func(a *ask) { a.csr.Status.Conditions[0].Type = certificatesv1.CertificateFailed }, ""},
		{"a serving certificate", func(a *ask) { a.csr.Spec.SignerName = certificatesv1.KubeletServingSignerName }, ""},
		{"a node that renews its client certificate", func(a *ask) { a.csr.Spec.Username = "system:node:new-0" }, ""},
		{"not of a node", func(a *ask) { a.template.Subject.CommonName = "new-0" }, ""},
		{"no PEM", func(a *ask) { a.send = func(der []byte) []byte { return der } }, ""},
		{"no request", func(a *ask) { a.send = func([]byte) []byte { return requestPEM([]byte("x")) } }, ""},
	} {
		a, _ := joiner()
		a.csr.Status.Conditions = append(a.csr.Status.Conditions, condition(certificatesv1.CertificateApproved))
		tt.do(a)
		a.csr.Spec.Request = a.pem(t)
		if got := approver.ApprovedFor(&a.csr); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// Without an authority of the cluster nothing is proven, whoever the machine that runs this trusts.
func TestRootsAreNeverTheMachines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pemOf("CERTIFICATE", cluster().certificate.Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	a, w := renewer()
	w.Shown.Roots = nil
	if got := a.decided(t, w); got.Reason != approver.ReasonNamesNotProven {
		t.Errorf("%s: %s", got.Reason, got.Message)
	}
}
