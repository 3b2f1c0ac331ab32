package approver_test

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
)

// Whatever Parse reads is one block of PEM and nothing else; what the oracle finds good, Parse reads as well; and everything else is
// one of the documented errors.
func FuzzParse(f *testing.F) {
	for _, tt := range corpus {
		a, w := tt.from()
		tt.do(a, w)
		f.Add(a.pem(f))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.Spec.Request = text
		request, err := approver.Parse(csr)
		if err != nil {
			if f := read(text); f.good && f.onlyNames {
				t.Errorf("the oracle can read it: %v", err)
			}
			if v := approver.Unreadable(err); v.Approve || v.Reason == "" || v.Message == "" {
				t.Errorf("%+v", v)
			}
			return
		}
		block, rest := pem.Decode(text)
		if block == nil || len(rest) > 0 || !bytes.Equal(pem.EncodeToMemory(block), text) || !bytes.Equal(block.Bytes, request.X509.Raw) {
			t.Error("another reader could read something else")
		}
		if node := request.Node(); strings.TrimPrefix(request.X509.Subject.CommonName, "system:node:") != node && node != "" {
			t.Errorf("the node is %q", node)
		}
	})
}

// Decide approves what the oracle approves.
func FuzzDecide(f *testing.F) {
	for _, from := range []func() (*ask, *world){joiner, server, renewer} {
		a, _ := from()
		spec := a.csr.Spec
		var usages []string
		for _, usage := range spec.Usages {
			usages = append(usages, string(usage))
		}
		for world := range uint16(16) {
			f.Add(a.pem(f), spec.SignerName, spec.Username, strings.Join(spec.Groups, " "), strings.Join(usages, ","), int64(60), world, "old-0 other-0")
		}
	}
	for _, tt := range corpus {
		a, w := tt.from()
		tt.do(a, w)
		f.Add(a.pem(f), a.csr.Spec.SignerName, a.csr.Spec.Username, strings.Join(a.csr.Spec.Groups, " "), "digital signature,client auth", int64(60), uint16(0), "old-0")
	}
	f.Fuzz(func(t *testing.T, text []byte, signer, username, groups, usages string, age int64, world uint16, nodes string) {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(age%1e6) * time.Second))
		csr.Spec = certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: signer, Username: username, Groups: strings.Fields(groups)}
		for usage := range strings.SplitSeq(usages, ",") {
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		request, err := approver.Parse(csr)
		if err != nil {
			return
		}
		show := shows()[int(world>>6)%len(shows())]
		in := approver.Inputs{Request: request, Nodes: sets.New(strings.Fields(nodes)...), Now: now, Shown: show.shown}
		in.Approvals = map[string]int{request.Node(): int(world>>2) % 3}
		w := truth{nodes: map[string]bool{}, now: now, maxAge: 2 * time.Hour, shown: show.proof, approvals: in.Approvals[request.Node()]}
		for name := range in.Nodes {
			w.nodes[name] = true
		}
		if world&1 != 0 {
			in.Inventory, w.there = racked(), racks
		}
		if world&2 != 0 {
			in.Policy.BootstrapTokens, w.tokens = true, true
		}
		verdict := approver.Decide(in)
		if allowed := read(text).allows(csr, w); verdict.Approve != allowed {
			t.Errorf("approved: %t, the oracle: %t: %s (%s)", verdict.Approve, allowed, verdict.Reason, verdict.Message)
		}
		if verdict.Approve != (len(verdict.Missing()) == 0 && len(verdict.Findings) > 0) {
			t.Errorf("the verdict contradicts itself: %+v", verdict)
		}
	})
}
