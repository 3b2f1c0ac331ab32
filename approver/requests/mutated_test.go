// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"bytes"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/requests"
)

type sample struct {
	node  string
	text  []byte
	inner *x509.CertificateRequest // nil when it cannot be parsed
	facts facts
}

func sampleOf(node string, text []byte) sample {
	s := sample{node: node, text: text, facts: read(text)}
	if inner, unreadable := requests.Parse(text); unreadable == nil {
		s.inner = inner
		if name, ok := strings.CutPrefix(inner.Subject.CommonName, "system:node:"); ok {
			s.node = name
		}
	}
	return s
}

const clientSigner, servingSigner = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"

var (
	nodeNames = []string{"new-0", "new-0", "new-0", "old-0", "old-0", "old-0", "other-0", "other-0", "twice-0", "twice-0", "early-0", "late-0", "just-0", "never-0", "strange-0", "NEW-0", "nеw-0"}
	hostNames = []string{"old-0", "old-0.example.com", "192.0.2.20", "new-0", "new-0.example.com", "192.0.2.10", "2001:db8::10", "twice-0", "192.0.2.30",
		"other-0", "192.0.2.40", "api.example.com", "*.example.com", "127.0.0.1", "kubernetes", "192.0.2.99", "Old-0", "fe80::1", "10.0.0"}
	ownNames = map[string][]string{
		"new-0": {"new-0", "new-0.example.com", "192.0.2.10", "2001:db8::10"}, "old-0": {"old-0", "old-0.example.com", "192.0.2.20"},
		"twice-0": {"twice-0", "192.0.2.30"}, "other-0": {"other-0", "192.0.2.40"},
	}
	keyNames = []string{"node", "node", "node", "node", "node2", "node2", "p384", "p521", "rsa2048", "rsa1024", "p224", "ed25519"}
)

// kubeletCase is what a kubelet presents, and what that proves.
type kubeletCase struct {
	presented *requests.KubeletCertificate
	proof     *proof
}

var kubeletCases = sync.OnceValue(func() []kubeletCase {
	list := []kubeletCase{{}}
	for _, node := range []string{"old-0", "other-0"} {
		for _, names := range [][]string{ownNames[node], {node}, {node, "*.example.com", "127.0.0.1", "10.0.0"}, {"api.example.com", "192.0.2.99", "kubernetes"}} {
			var r x509.CertificateRequest
			setNames(&r, names...)
			p := &proof{node: node, names: r.DNSNames}
			for _, ip := range r.IPAddresses {
				p.addresses = append(p.addresses, string(ip))
			}
			list = append(list, kubeletCase{presented(nodeSubject(node), r, func(*x509.Certificate) {}), p},
				kubeletCase{presented(nodeSubject(node), r, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), nil},
				kubeletCase{presented(nodeSubject(node), r, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), nil},
				kubeletCase{presented(pkix.Name{CommonName: "system:node:" + node}, r, func(*x509.Certificate) {}), nil})
		}
	}
	return list
})

type mutator struct {
	*rand.Rand
	bases []vector // a client request and a serving request
	pool  []sample
	// resigned and broken count requests whose bytes were changed before and after signing.
	resigned, broken int
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func newMutator(randomSeed uint64, pool int) *mutator {
	m := &mutator{Rand: rand.New(rand.NewPCG(randomSeed, randomSeed)), bases: vectors().Approved}
	for _, v := range vectors().Hostile {
		m.pool = append(m.pool, sampleOf("new-0", v.Object.Spec.Request))
	}
	for len(m.pool) < pool {
		node := pick(m.Rand, nodeNames)
		by := key(pick(m.Rand, keyNames[:6+m.IntN(len(keyNames)-5)]))
		template := m.template(node)
		for m.IntN(4) == 0 {
			m.oddity(template)
		}
		m.pool = append(m.pool, sampleOf(node, requestPEM(must(x509.CreateCertificateRequest(crand.Reader, template, by)))))
	}
	return m
}

func (m *mutator) template(node string) *x509.CertificateRequest {
	template := &x509.CertificateRequest{Subject: nodeSubject(node)}
	if node == "other-0" || m.IntN(2) == 0 {
		names := slices.Clone(ownNames[node])
		m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:m.IntN(len(names)+1)]
		for m.IntN(8) == 0 {
			names = append(names, pick(m.Rand, hostNames))
		}
		setNames(template, names...)
	}
	return template
}

func (m *mutator) oddity(template *x509.CertificateRequest) {
	switch s := &template.Subject; m.IntN(10) {
	case 0:
		s.Organization = append(s.Organization, pick(m.Rand, []string{"system:masters", "system:nodes", ""}))
	case 1:
		s.Organization = pick(m.Rand, [][]string{nil, {"system:node"}, {"system:masters"}})
	case 2:
		s.CommonName = pick(m.Rand, []string{"", "new-0", "system:admin", "system:node:", "SYSTEM:NODE:new-0"})
	case 3:
		s.CommonName = m.scramble(s.CommonName)
	case 4:
		s.Country, s.SerialNumber = []string{"DE"}, "1"
	case 5:
		template.EmailAddresses = []string{"admin@example.com"}
	case 6:
		template.URIs = []*url.URL{{Scheme: "https", Host: "old-0"}}
	case 7:
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: m.IntN(2) == 0, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}})
	case 8:
		setNames(template, pick(m.Rand, hostNames), pick(m.Rand, hostNames))
	case 9:
		template.IPAddresses = append(template.IPAddresses, net.ParseIP("192.0.2.20"))
	}
}

func (m *mutator) scramble(s string) string {
	if s == "" {
		return "x"
	}
	i := m.IntN(len(s))
	return s[:i] + pick(m.Rand, []string{"", "x", "X", " ", ".", ":", "/", "\u200b", "о", string(s[i]) + string(s[i])}) + s[i+1:]
}

// bytesOf changes bytes, and may sign the request again.
func (m *mutator) bytesOf(s sample) sample {
	block, _ := pem.Decode(s.text)
	if block == nil {
		return s
	}
	der := slices.Clone(block.Bytes)
	change := func(b []byte) []byte {
		if len(b) == 0 {
			return b
		}
		i := m.IntN(len(b))
		switch m.IntN(5) {
		case 0:
			b[i] ^= 1 << m.IntN(8)
		case 1:
			b[i] = byte(m.IntN(256))
		case 2:
			b = slices.Delete(b, i, i+1)
		case 3:
			b = slices.Insert(b, i, byte(m.IntN(256)))
		case 4:
			b = slices.Insert(b, i, b[i:min(len(b), i+1+m.IntN(16))]...)
		}
		return b
	}
	if request := parts(der, 0x30, 3); request != nil && m.IntN(2) == 0 {
		m.resigned++
		by := key("node")
		body := change(slices.Clone(request[0].all))
		// With another key all of these would fail alike.
		if raw, err := x509.MarshalPKIXPublicKey(by.Public()); err != nil || !bytes.Contains(body, raw) {
			return s
		}
		return sampleOf(s.node, requestPEM(signed(body, by)))
	}
	m.broken++
	if m.IntN(4) == 0 {
		return sampleOf(s.node, change(slices.Clone(s.text)))
	}
	return sampleOf(s.node, requestPEM(change(der)))
}

// once creates one request, and returns the verdict, the oracle's answer, and a description if they differ.
func (m *mutator) once() (verdict requests.Verdict, allowed bool, what string) {
	s := pick(m.Rand, m.pool)
	if m.IntN(16) == 0 {
		s = m.bytesOf(s)
	}
	in := m.bases[0].inputs()
	if (s.inner != nil && len(s.inner.Extensions) > 0) != (m.IntN(10) == 0) {
		in = m.bases[1].inputs()
		in.Request.Spec.Username = "system:node:" + s.node
		in.Nodes.Insert("new-0")
	}
	csr := in.Request
	csr.Spec.Request = s.text
	var proven *proof

	often := func(n int) bool { return m.IntN(n) == 0 }
	sometimes := func(n int, change func()) {
		if often(n) {
			change()
		}
	}
	spec := &csr.Spec
	sometimes(20, func() {
		spec.SignerName = pick(m.Rand, []string{servingSigner, clientSigner, certificatesv1.KubeAPIServerClientSignerName, ""})
	})
	sometimes(20, func() {
		spec.Username = pick(m.Rand, []string{"system:admin", "system:node:" + pick(m.Rand, nodeNames), "system:bootstrap:abcdef", "system:bootstrap:abc-ef", m.scramble(spec.Username)})
	})
	sometimes(20, func() { in.Policy.BootstrapTokens = true })
	if in.Policy.BootstrapTokens && often(2) {
		spec.Username, spec.Groups = pick(m.Rand, []string{"system:bootstrap:abcdef", "system:bootstrap:abcdefg", "system:bootstrap:ABCDEF"}), slices.Clone(tokenGroups)
	}
	sometimes(20, func() {
		spec.Groups = changed(m, spec.Groups, "system:masters", "system:nodes", "system:authenticated", "system:serviceaccounts")
	})
	sometimes(10, func() { spec.Usages = append(spec.Usages, certificatesv1.UsageKeyEncipherment) })
	sometimes(20, func() {
		spec.Usages = changed(m, spec.Usages, "client auth", "server auth", "key encipherment", "digital signature", "any", "cert sign")
	})
	sometimes(15, func() {
		csr.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(m.IntN(5*3600)-4*3600) * time.Second))
	})
	sometimes(40, func() {
		decision := pick(m.Rand, []certificatesv1.RequestConditionType{"Approved", "Denied", "Failed"})
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: decision})
	})
	sometimes(60, func() { csr.Status.Certificate = []byte("x") })
	sometimes(15, func() { in.Nodes = sets.New(pick(m.Rand, nodeNames), pick(m.Rand, nodeNames)) })
	sometimes(40, func() { in.Nodes = nil })
	sometimes(20, func() { in.Inventory = nil })
	sometimes(20, func() { in.Approvals[s.node] = m.IntN(4) })
	if renews := s.node == "other-0" && often(2); renews || often(20) {
		kubelet := pick(m.Rand, kubeletCases())
		for renews && (kubelet.proof == nil || kubelet.proof.node != s.node) && !often(4) {
			kubelet = pick(m.Rand, kubeletCases())
		}
		in.KubeletCertificate, proven = kubelet.presented, kubelet.proof
		sometimes(2, func() {
			node, ip := s.node, pick(m.Rand, []string{"192.0.2.20", "192.0.2.40", "192.0.2.99", "127.0.0.1"})
			sometimes(4, func() { node = pick(m.Rand, nodeNames) })
			in.EgressIPs = requests.EgressIPs{Node: node, IPs: []netip.Addr{netip.MustParseAddr(ip)}}
		})
	}

	allowed = s.facts.allows(in, proven)
	if s.inner != nil {
		verdict = requests.DecideBy(in, s.inner, requests.Checks[requests.FlowOf(csr)])
	}
	if verdict.Approve != allowed {
		what = fmt.Sprintf("%s %s by %q in %q for %q at %s: %s (%s)\n%s", s.node, spec.SignerName, spec.Username, spec.Groups, spec.Usages,
			csr.CreationTimestamp, verdict.Reason, verdict.Message, s.text)
	}
	return verdict, allowed, what
}

func changed[T ~string](m *mutator, list []T, more ...T) []T {
	list = slices.Clone(list)
	switch i := m.IntN(len(list)); m.IntN(5) {
	case 0:
		list = slices.Delete(list, i, i+1)
	case 1:
		list = append(list, pick(m.Rand, more))
	case 2:
		list[i] = T(m.scramble(string(list[i])))
	case 3:
		list[i] = pick(m.Rand, more)
	case 4:
		m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) // which has no effect
	}
	return list
}

const mutationsRandomSeed = 20261120 // signatures still differ between runs

// The module agrees with the oracle on a million requests, mutated in fields, bytes and the other inputs.
func TestMutatedRequests(t *testing.T) {
	total, pool := 1_000_000, 4000
	if testing.Short() {
		total, pool = 4_000, 400
	}
	m := newMutator(mutationsRandomSeed, pool)
	approved, wrongly, refused, began := 0, 0, 0, time.Now()
	for range total {
		verdict, allowed, what := m.once()
		if verdict.Approve {
			approved++
		}
		switch {
		case verdict.Approve && !allowed:
			if wrongly++; wrongly < 5 {
				t.Errorf("wrongly approved: %s", what)
			}
		case !verdict.Approve && allowed:
			if refused++; refused < 5 {
				t.Errorf("wrongly refused: %s", what)
			}
		}
	}
	if approved < total/10 {
		t.Errorf("only %d of %d were approved, too few for this test", approved, total)
	}
	t.Logf("mutated requests: %d (random seed %d, %d signed, %d signed again after a change, %d changed after they were signed), rightly approved: %d, wrongly approved: %d, "+
		"wrongly refused: %d, in %s", total, mutationsRandomSeed, len(m.pool), m.resigned, m.broken, approved-wrongly, wrongly, refused, time.Since(began).Round(time.Second))
}
