// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/requests"
)

// Parse accepts only single PEM blocks, and all that the oracle accepts. Errors have a reason and a message.
func FuzzParse(f *testing.F) {
	for _, v := range vectors().Hostile {
		f.Add(v.Object.Spec.Request)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		signed, unreadable := requests.Parse(text)
		if unreadable != nil {
			if f := read(text); f.good && f.onlyNames {
				t.Errorf("the oracle accepts it: %v", unreadable)
			}
			if unreadable.Reason == "" || unreadable.Message == "" {
				t.Errorf("%+v", unreadable)
			}
			return
		}
		if block, rest := pem.Decode(text); block == nil || len(rest) > 0 || !bytes.Equal(pem.EncodeToMemory(block), text) || !bytes.Equal(block.Bytes, signed.Raw) {
			t.Error("another parser could read another request")
		}
	})
}

// Decide approves what the oracle approves, and nothing else.
func FuzzDecide(f *testing.F) {
	add := func(v vector, bits uint16, nodes string) {
		var usages []string
		for _, usage := range v.Object.Spec.Usages {
			usages = append(usages, string(usage))
		}
		spec := v.Object.Spec
		f.Add(spec.Request, spec.SignerName, spec.Username, strings.Join(spec.Groups, " "), strings.Join(usages, ","), int64(60), bits, nodes)
	}
	for _, v := range vectors().Approved {
		for bits := range uint16(16) {
			add(v, bits, "old-0 other-0")
		}
	}
	for _, v := range vectors().Hostile {
		add(v, 0, "old-0")
	}
	f.Fuzz(func(t *testing.T, text []byte, signer, username, groups, usages string, age int64, bits uint16, nodes string) {
		csr := &certificatesv1.CertificateSigningRequest{}
		csr.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(age%1e6) * time.Second))
		csr.Spec = certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: signer, Username: username, Groups: strings.Fields(groups)}
		for usage := range strings.SplitSeq(usages, ",") {
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		signed, _ := requests.Parse(text)
		if signed == nil {
			return
		}
		node := strings.TrimPrefix(signed.Subject.CommonName, "system:node:")
		kubelet := kubeletCases()[int(bits>>6)%len(kubeletCases())]
		in := requests.Inputs{Request: csr, Nodes: sets.New(strings.Fields(nodes)...), Now: now, KubeletCertificate: kubelet.presented}
		in.Approvals = map[string]int{node: int(bits>>2) % 3}
		in.Policy.BootstrapTokens = bits&2 != 0
		if bits&1 != 0 {
			in.Inventory = testInventory()
		}
		verdict := requests.Decide(in)
		if allowed := read(text).allows(in, kubelet.proof); verdict.Approve != allowed {
			t.Errorf("approved: %t, the oracle: %t: %s (%s)", verdict.Approve, allowed, verdict.Reason, verdict.Message)
		}
		if verdict.Approve != (len(requests.Failed(verdict)) == 0 && len(verdict.Findings) > 0) {
			t.Errorf("the verdict is inconsistent: %+v", verdict)
		}
	})
}
