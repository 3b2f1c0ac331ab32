package approver_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
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

	"github.com/solonode/sno/approver"
)

// sample is a request that is signed already, and read by both sides.
type sample struct {
	node  string
	text  []byte
	inner *x509.CertificateRequest // nil when it cannot be read
	facts facts
}

func sampleOf(node string, text []byte) sample {
	s := sample{node: node, text: text, facts: read(text)}
	if inner, err := approver.Read(text); err == nil {
		s.inner = inner
		if name, ok := strings.CutPrefix(inner.Subject.CommonName, "system:node:"); ok {
			s.node = name
		}
	}
	return s
}

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

// racks is the inventory of the tests once more, by hand, for the oracle.
var racks = func() map[string]entry {
	at := func(clock string) time.Time {
		moment, err := time.Parse(time.DateTime, "2026-11-20 "+clock)
		if err != nil {
			panic(err)
		}
		return moment
	}
	address := func(list ...string) (out []string) {
		for _, a := range list {
			out = append(out, string(netip.MustParseAddr(a).AsSlice()))
		}
		return out
	}
	eight, noon := at("08:00:00"), at("12:00:00")
	return map[string]entry{
		"new-0":   {[]string{"new-0", "new-0.example.com"}, address("192.0.2.10", "2001:db8::10"), eight, noon, 1, false},
		"old-0":   {[]string{"old-0", "old-0.example.com"}, address("192.0.2.20"), eight, noon, 1, false},
		"twice-0": {[]string{"twice-0"}, address("192.0.2.30"), eight, noon, 2, true},
		"early-0": {[]string{"early-0"}, nil, at("10:00:01"), noon, 1, false},
		"late-0":  {[]string{"late-0"}, nil, eight, at("10:00:00"), 1, false},
		"just-0":  {[]string{"just-0"}, nil, at("09:59:30"), noon, 1, false},
		"never-0": {names: []string{"never-0"}, count: 1},
	}
}()

// seen is what a kubelet shows, and what that proves.
type seen struct {
	shown *approver.Shown
	proof *proof
}

var shows = sync.OnceValue(func() []seen {
	list := []seen{{}}
	for _, node := range []string{"old-0", "other-0"} {
		for _, names := range [][]string{ownNames[node], {node}, {node, "*.example.com", "127.0.0.1", "10.0.0"}, {"api.example.com", "192.0.2.99", "kubernetes"}} {
			a, _ := serving(node, names...)
			dns, ips := a.template.DNSNames, a.template.IPAddresses
			p := &proof{node: node, names: dns}
			for _, ip := range ips {
				p.addresses = append(p.addresses, string(ip))
			}
			list = append(list, seen{shown(cluster(), nodeSubject(node), dns, ips, nil), p},
				seen{shown(cluster(), nodeSubject(node), dns, ips, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), nil},
				seen{shown(cluster(), nodeSubject(node), dns, ips, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), nil},
				seen{shown(cluster(), pkix.Name{CommonName: "system:node:" + node}, dns, ips, nil), nil})
		}
	}
	return list
})

// mutator makes requests from a random seed.
type mutator struct {
	*rand.Rand
	tb   testing.TB
	pool []sample
	// resigned and broken count the requests whose bytes were changed, before and after they were signed.
	resigned, broken int
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// newMutator signs the requests of the pool: half of them sound, the others with one or more oddities, and those of the corpus.
func newMutator(tb testing.TB, randomSeed uint64, pool int) *mutator {
	m := &mutator{Rand: rand.New(rand.NewPCG(randomSeed, randomSeed)), tb: tb}
	for _, tt := range corpus {
		a, w := tt.from()
		tt.do(a, w)
		m.pool = append(m.pool, sampleOf("new-0", a.pem(tb)))
	}
	for len(m.pool) < pool {
		node := pick(m.Rand, nodeNames)
		a := m.template(node)
		for m.IntN(4) == 0 {
			m.oddity(a)
		}
		m.pool = append(m.pool, sampleOf(node, a.pem(tb)))
	}
	return m
}

func (m *mutator) template(node string) *ask {
	a, _ := joining(node)
	a.key = key(pick(m.Rand, keyNames[:6+m.IntN(len(keyNames)-5)]))
	if node == "other-0" || m.IntN(2) == 0 {
		names := slices.Clone(ownNames[node])
		m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:m.IntN(len(names)+1)]
		for m.IntN(8) == 0 {
			names = append(names, pick(m.Rand, hostNames))
		}
		a.names(names...)
	}
	return a
}

// oddity changes what is signed.
func (m *mutator) oddity(a *ask) {
	switch s := &a.template.Subject; m.IntN(10) {
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
		a.template.EmailAddresses = []string{"admin@example.com"}
	case 6:
		a.template.URIs = []*url.URL{{Scheme: "https", Host: "old-0"}}
	case 7:
		a.template.ExtraExtensions = append(a.template.ExtraExtensions, pkix.Extension{Id: oidBasicConstraints, Critical: m.IntN(2) == 0, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}})
	case 8:
		a.names(pick(m.Rand, hostNames), pick(m.Rand, hostNames))
	case 9:
		a.template.IPAddresses = append(a.template.IPAddresses, net.ParseIP("192.0.2.20"))
	}
}

// scramble changes one character.
func (m *mutator) scramble(s string) string {
	if s == "" {
		return "x"
	}
	i := m.IntN(len(s))
	return s[:i] + pick(m.Rand, []string{"", "x", "X", " ", ".", ":", "/", "\u200b", "о", string(s[i]) + string(s[i])}) + s[i+1:]
}

// bytesOf changes bytes of a request, and signs it again or not.
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
		// The key must stay the one that signs, or every such request would fail alike.
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

// once makes one request, and returns what the module and what the oracle say about it.
func (m *mutator) once() (verdict approver.Verdict, allowed bool, what string) {
	s := pick(m.Rand, m.pool)
	if m.IntN(16) == 0 {
		s = m.bytesOf(s)
	}
	a, w := joining(s.node)
	if (s.inner != nil && len(s.inner.Extensions) > 0) != (m.IntN(10) == 0) {
		a, w = serving(s.node)
		w.Nodes.Insert("new-0")
	}
	csr, in := &a.csr, &w.Inputs
	csr.Spec.Request = s.text
	t := truth{nodes: map[string]bool{}, there: racks, now: now, maxAge: 2 * time.Hour}

	often := func(n int) bool { return m.IntN(n) == 0 }
	spec := &csr.Spec
	if often(20) {
		spec.SignerName = pick(m.Rand, []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeAPIServerClientSignerName, ""})
	}
	if often(20) {
		spec.Username = pick(m.Rand, []string{"system:admin", "system:node:" + pick(m.Rand, nodeNames), "system:bootstrap:abcdef", "system:bootstrap:abc-ef", m.scramble(spec.Username)})
	}
	if often(20) {
		in.Policy.BootstrapTokens, t.tokens = true, true
		if often(2) {
			spec.Username, spec.Groups = pick(m.Rand, []string{"system:bootstrap:abcdef", "system:bootstrap:abcdefg", "system:bootstrap:ABCDEF"}), slices.Clone(kubeadmGroups)
		}
	}
	if often(20) {
		spec.Groups = m.changed(spec.Groups, "system:masters", "system:nodes", "system:authenticated", "system:serviceaccounts")
	}
	if often(10) {
		spec.Usages = append(spec.Usages, certificatesv1.UsageKeyEncipherment)
	}
	if often(20) {
		m.usages(spec)
	}
	if often(15) {
		csr.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(m.IntN(5*3600)-4*3600) * time.Second))
	}
	if often(40) {
		csr.Status.Conditions = append(csr.Status.Conditions, condition(pick(m.Rand, []certificatesv1.RequestConditionType{"Approved", "Denied", "Failed"})))
	}
	if often(60) {
		csr.Status.Certificate = []byte("x")
	}
	if often(15) {
		in.Nodes = sets.New(pick(m.Rand, nodeNames), pick(m.Rand, nodeNames))
	}
	if often(40) {
		in.Nodes = nil
	}
	for name := range in.Nodes {
		t.nodes[name] = true
	}
	if in.Nodes == nil {
		t.nodes = nil
	}
	if often(20) {
		in.Inventory, t.there = nil, nil
	}
	if often(20) {
		t.approvals = m.IntN(4)
		in.Approvals[s.node] = t.approvals
	}
	if renews := s.node == "other-0" && often(2); renews || often(20) {
		show := pick(m.Rand, shows())
		for renews && (show.proof == nil || show.proof.node != s.node) && !often(4) {
			show = pick(m.Rand, shows())
		}
		in.Shown, t.shown = show.shown, show.proof
		if often(2) {
			node, ip := s.node, pick(m.Rand, []string{"192.0.2.20", "192.0.2.40", "192.0.2.99", "127.0.0.1"})
			if often(4) {
				node = pick(m.Rand, nodeNames)
			}
			in.Egress = approver.Egress{Node: node, IPs: []netip.Addr{netip.MustParseAddr(ip)}}
			t.egress = proof{node: node, addresses: []string{string(netip.MustParseAddr(ip).AsSlice())}}
		}
	}

	allowed = s.facts.allows(csr, t)
	if s.inner != nil {
		in.Request = approver.Assemble(csr, s.inner)
		verdict = approver.Decide(*in)
	}
	if verdict.Approve != allowed {
		what = fmt.Sprintf("%s %s by %q in %q for %q at %s: %s (%s)\n%s", s.node, spec.SignerName, spec.Username, spec.Groups, spec.Usages,
			csr.CreationTimestamp, verdict.Reason, verdict.Message, s.text)
	}
	return verdict, allowed, what
}

func (m *mutator) changed(list []string, more ...string) []string {
	list = slices.Clone(list)
	switch i := m.IntN(len(list)); m.IntN(5) {
	case 0:
		list = slices.Delete(list, i, i+1)
	case 1:
		list = append(list, pick(m.Rand, more))
	case 2:
		list[i] = m.scramble(list[i])
	case 3:
		list[i] = pick(m.Rand, more)
	case 4:
		m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) // which changes nothing
	}
	return list
}

func (m *mutator) usages(spec *certificatesv1.CertificateSigningRequestSpec) {
	var list []string
	for _, usage := range spec.Usages {
		list = append(list, string(usage))
	}
	list = m.changed(list, "client auth", "server auth", "key encipherment", "digital signature", "any", "cert sign")
	spec.Usages = nil
	for _, usage := range list {
		spec.Usages = append(spec.Usages, certificatesv1.KeyUsage(usage))
	}
}

// mutationsRandomSeed makes every run the same but for the signatures.
const mutationsRandomSeed = 20261120

// A million requests, mutated in their fields, in their bytes, and in what is around them: none is approved that the oracle would not
// approve, and none is refused that it would. With -short it is four thousand.
func TestMutatedRequests(t *testing.T) {
	requests, pool := 1_000_000, 4000
	if testing.Short() {
		requests, pool = 4_000, 400
	}
	m := newMutator(t, mutationsRandomSeed, pool)
	approved, wrongly, refused, began := 0, 0, 0, time.Now()
	reasons := map[string]int{}
	for range requests {
		verdict, allowed, what := m.once()
		reasons[verdict.Reason]++
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
	if approved < requests/10 {
		t.Errorf("only %d of %d were approved, so this proves little", approved, requests)
	}
	t.Logf("mutated requests: %d (random seed %d, %d signed, %d signed again after a change, %d changed after they were signed), rightly approved: %d, wrongly approved: %d, "+
		"wrongly refused: %d, in %s", requests, mutationsRandomSeed, len(m.pool), m.resigned, m.broken, approved-wrongly, wrongly, refused, time.Since(began).Round(time.Second))
	var lines []string
	for reason, n := range reasons {
		lines = append(lines, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(lines)
	t.Log(strings.Join(lines, ", "))
}
