package approver_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
)

// now is when all decisions of the tests are made.
var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// rack is the inventory of the tests: new-0 may join, old-0 is there, twice-0 may join again, and the rest lack something.
const rack = `version: 1
nodes:
- name: new-0
  addresses: [new-0.example.com, 192.0.2.10, "2001:db8::10"]
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T12:00:00Z}
- name: old-0
  addresses: [old-0.example.com, 192.0.2.20]
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T12:00:00Z}
- name: twice-0
  addresses: [192.0.2.30]
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T12:00:00Z}
  count: 2
  rejoin: true
- name: early-0
  window: {notBefore: 2026-11-20T10:00:01Z, notAfter: 2026-11-20T12:00:00Z}
- name: late-0
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T10:00:00Z}
- name: just-0
  window: {notBefore: 2026-11-20T09:59:30Z, notAfter: 2026-11-20T12:00:00Z}
- name: never-0
`

// ask is a request on its way to the API server, and what the API server would say of it.
type ask struct {
	// template and key are what a kubelet signs; raw, where it is set, is signed instead of it.
	template x509.CertificateRequest
	key      crypto.Signer
	raw      func(a *ask) []byte
	// send changes the bytes that are sent.
	send func(der []byte) []byte
	csr  certificatesv1.CertificateSigningRequest
}

// world is everything else that a decision depends on.
type world struct {
	approver.Inputs
}

func (a *ask) pem(tb testing.TB) []byte {
	tb.Helper()
	var der []byte
	var err error
	if a.raw != nil {
		der = signed(a.raw(a), a.key)
	} else if der, err = x509.CreateCertificateRequest(rand.Reader, &a.template, a.key); err != nil {
		tb.Fatal(err)
	}
	if a.send != nil {
		return a.send(der)
	}
	return pemOf("CERTIFICATE REQUEST", der)
}

// decided is the verdict about it.
func (a *ask) decided(tb testing.TB, w *world) approver.Verdict {
	tb.Helper()
	a.csr.Spec.Request = a.pem(tb)
	request, err := approver.Parse(&a.csr)
	if err != nil {
		return approver.Unreadable(err)
	}
	w.Request = request
	return approver.Decide(w.Inputs)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// key is one of a few keys that are made once.
func key(name string) crypto.Signer {
	keysMutex.Lock()
	defer keysMutex.Unlock()
	if k, ok := keys[name]; ok {
		return k
	}
	var k crypto.Signer
	var err error
	switch name {
	case "rsa1024":
		k, err = rsa.GenerateKey(rand.Reader, 1024)
	case "rsa-cube":
		k = newCube()
	case "rsa2048":
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	case "p224":
		k, err = ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	case "p384":
		k, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p521":
		k, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ed25519":
		_, k, err = ed25519.GenerateKey(rand.Reader)
	default:
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		panic(err)
	}
	keys[name] = k
	return k
}

// cube is an RSA key with the exponent 3, which no library makes any more.
type cube struct{ n, d *big.Int }

func newCube() cube {
	for {
		p, err := rand.Prime(rand.Reader, 1024)
		if err != nil {
			panic(err)
		}
		q, err := rand.Prime(rand.Reader, 1024)
		if err != nil {
			panic(err)
		}
		n, one := new(big.Int).Mul(p, q), big.NewInt(1)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		if d := new(big.Int).ModInverse(big.NewInt(3), phi); d != nil && n.BitLen() == 2048 {
			return cube{n, d}
		}
	}
}

func (c cube) Public() crypto.PublicKey { return &rsa.PublicKey{N: c.n, E: 3} }

// Sign signs a SHA-256 digest, by PKCS #1 v1.5.
func (c cube) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	info := append([]byte("\x00\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"), digest...)
	block := append([]byte{0, 1}, append(bytes.Repeat([]byte{0xff}, 256-2-len(info)), info...)...)
	return new(big.Int).Exp(new(big.Int).SetBytes(block), c.d, c.n).FillBytes(make([]byte, 256)), nil
}

var (
	keysMutex sync.Mutex
	keys      = map[string]crypto.Signer{}
)

// joining is a request as the kubelet of a new node makes it, in a cluster where it is to be approved.
func joining(node string) (*ask, *world) {
	a := &ask{key: key("node"), template: x509.CertificateRequest{Subject: nodeSubject(node)}}
	a.csr.Name = "csr-joining"
	a.csr.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	a.csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Username:   "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
	return a, newWorld()
}

// serving is the same for the serving certificate of a node that is there.
func serving(node string, names ...string) (*ask, *world) {
	a := &ask{key: key("node"), template: x509.CertificateRequest{Subject: nodeSubject(node)}}
	a.names(names...)
	a.csr.Name = "csr-serving"
	a.csr.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	a.csr.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName,
		Username:   "system:node:" + node,
		Groups:     []string{"system:nodes", "system:authenticated"},
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	}
	return a, newWorld()
}

// names are DNS names and IP addresses, whichever they look like.
func (a *ask) names(names ...string) {
	a.template.DNSNames, a.template.IPAddresses = nil, nil
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			a.template.IPAddresses = append(a.template.IPAddresses, ip.AsSlice())
		} else {
			a.template.DNSNames = append(a.template.DNSNames, name)
		}
	}
}

// renewing is a node that is in no inventory, and whose kubelet shows its certificate.
func renewing(node string, names ...string) (*ask, *world) {
	a, w := serving(node, names...)
	w.Inventory = nil
	w.Nodes.Insert(node)
	w.Shown = shown(cluster(), nodeSubject(node), a.template.DNSNames, a.template.IPAddresses, nil)
	return a, w
}

func newWorld() *world {
	return &world{approver.Inputs{Nodes: sets.New("old-0", "other-0", "twice-0"), Inventory: racked(), Approvals: map[string]int{}, Now: now}}
}

var racked = sync.OnceValue(func() *inventory.Inventory {
	list, err := inventory.Load([]byte(rack))
	if err != nil {
		panic(err)
	}
	return list
})

func nodeSubject(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
}

// authority signs the certificates that kubelets show.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

var cluster = sync.OnceValue(func() *authority { return newAuthority("kubelets") })

func newAuthority(name string) *authority {
	a := &authority{key: key(name)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = certificate(template, template, a.key.Public(), a.key)
	return a
}

func certificate(template, parent *x509.Certificate, public crypto.PublicKey, by crypto.Signer) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err == nil {
		if c, parseErr := x509.ParseCertificate(der); parseErr == nil {
			return c
		}
	}
	panic(err)
}

// shown is what a kubelet with such a certificate shows, in a cluster of this authority.
func shown(by *authority, subject pkix.Name, names []string, addresses []net.IP, change func(*x509.Certificate)) *approver.Shown {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, DNSNames: names, IPAddresses: addresses,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cluster().certificate)
	return &approver.Shown{Chain: []*x509.Certificate{certificate(template, by.certificate, key("shown").Public(), by.key)}, Roots: roots}
}

// Parts of a request by hand, for what no library makes.

func marshal(value any) []byte {
	raw, err := asn1.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

func sequence(parts ...[]byte) []byte {
	return marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: slices.Concat(parts...)})
}

func set(parts ...[]byte) []byte {
	return marshal(asn1.RawValue{Tag: asn1.TagSet, IsCompound: true, Bytes: slices.Concat(parts...)})
}

func tagged(tag int, compound bool, parts ...[]byte) []byte {
	return marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: compound, Bytes: slices.Concat(parts...)})
}

func text(tag int, value string) []byte {
	return marshal(asn1.RawValue{Tag: tag, Bytes: []byte(value)})
}

var (
	oidCommonName         = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization       = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidAltName            = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidBasicConstraints   = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidKeyUsage           = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidExtensions         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidChallengePassword  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
	oidECDSAWithSHA256    = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	oidSHA256WithRSA      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
	oidECDSAWithSHA1      = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1}
	oidUserPrincipalName  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 20, 2, 3}
	tagPrintable, tagUTF8 = asn1.TagPrintableString, asn1.TagUTF8String
)

func attribute(oid asn1.ObjectIdentifier, tag int, value string) []byte {
	return sequence(marshal(oid), text(tag, value))
}

// rdns is a subject of the given parts, each in a set of its own.
func rdns(parts ...[]byte) []byte {
	var all [][]byte
	for _, part := range parts {
		all = append(all, set(part))
	}
	return sequence(all...)
}

func nodeRDNs(node string) []byte {
	return rdns(attribute(oidOrganization, tagPrintable, "system:nodes"), attribute(oidCommonName, tagPrintable, "system:node:"+node))
}

func (a *ask) keyInfo() []byte {
	raw, err := x509.MarshalPKIXPublicKey(a.key.Public())
	if err != nil {
		panic(err)
	}
	return raw
}

// extensions is the attribute that asks for them.
func extensions(list ...pkix.Extension) []byte {
	var all [][]byte
	for _, e := range list {
		all = append(all, marshal(e))
	}
	return sequence(marshal(oidExtensions), set(sequence(all...)))
}

// altName is the extension with these general names.
func altName(names ...[]byte) pkix.Extension {
	return pkix.Extension{Id: oidAltName, Value: sequence(names...)}
}

func dns(name string) []byte { return tagged(2, false, []byte(name)) }

// body is what is signed.
func body(version int, subject, keyInfo []byte, attributes ...[]byte) []byte {
	return sequence(marshal(version), subject, keyInfo, tagged(0, true, attributes...))
}

// with makes the kubelet send these attributes.
func (a *ask) with(node string, attributes ...[]byte) {
	a.raw = func(a *ask) []byte { return body(0, nodeRDNs(node), a.keyInfo(), attributes...) }
}

// subjected makes the kubelet send this subject, and the names of the template.
func (a *ask) subjected(parts ...[]byte) {
	a.template.Subject, a.template.RawSubject = pkix.Name{}, rdns(parts...)
}

// signed is a whole request around what is signed by an ECDSA key, with SHA-256.
func signed(body []byte, by crypto.Signer) []byte {
	return signedWith(body, by, oidECDSAWithSHA256)
}

func signedWith(body []byte, by crypto.Signer, algorithm asn1.ObjectIdentifier) []byte {
	hash := sha256.Sum256(body)
	digest, opts := hash[:], crypto.SHA256
	if algorithm.Equal(oidECDSAWithSHA1) {
		short := sha1.Sum(body)
		digest, opts = short[:], crypto.SHA1
	}
	signature, err := by.Sign(rand.Reader, digest, opts)
	if err != nil {
		panic(err)
	}
	return withSignature(body, sequence(marshal(algorithm)), signature)
}

// signedAs says that it is signed by this algorithm, by SHA-256.
func signedAs(body []byte, by crypto.Signer, algorithm []byte) []byte {
	hash := sha256.Sum256(body)
	signature, err := by.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		panic(err)
	}
	return withSignature(body, algorithm, signature)
}

func withSignature(body, algorithm, signature []byte) []byte {
	return sequence(body, algorithm, marshal(asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}))
}

func condition(kind certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue}
}

// noNodes are the nodes of a cluster that has none yet.
var noNodes = sets.New[string]()

// requestOf is the request of a new node, for the examples.
func requestOf(node string) *certificatesv1.CertificateSigningRequest {
	a, _ := joining(node)
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
	if err != nil {
		panic(err)
	}
	a.csr.Spec.Request = requestPEM(der)
	return &a.csr
}
