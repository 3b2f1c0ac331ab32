package approver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Checks of both flows.

func checkUndecided(in *Inputs) *fault {
	if in.Request.Decided {
		return &fault{ReasonAlreadyDecided, "Somebody has approved or denied it, or it is signed already"}
	}
	return nil
}

// exactly tells whether have consists of the values in want, in any order. want has no value twice.
func exactly[T comparable](have, want []T) bool {
	return len(have) == len(want) && !slices.ContainsFunc(want, func(w T) bool { return !slices.Contains(have, w) })
}

func checkGroups(have, want []string) *fault {
	if exactly(have, want) {
		return nil
	}
	return &fault{ReasonGroupsWrong, fmt.Sprintf("The groups of the requestor are %q; they must be exactly %q", have, want)}
}

// checkUsages wants a signature and what the certificate is for. A key that can encrypt may also be used so: older kubelets ask for that
// with every key, newer ones with RSA keys (U-APP-5).
func checkUsages(have []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) *fault {
	want := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
	if exactly(have, want) || exactly(have, append(want, certificatesv1.UsageKeyEncipherment)) {
		return nil
	}
	return &fault{ReasonUsagesWrong, fmt.Sprintf("The usages are %q; they must be exactly %q, and may have %q beside",
		have, want, certificatesv1.UsageKeyEncipherment)}
}

// subjectOf is the subject of a node, in the very bytes that a kubelet sends.
func subjectOf(node string) []byte {
	name := pkix.Name{CommonName: nodePrefix + node, Organization: []string{nodesGroup}}
	raw, err := asn1.Marshal(name.ToRDNSequence())
	if err != nil { // no name that was read from a request
		return nil
	}
	return raw
}

func isSubjectOf(raw []byte, node string) bool {
	return node != "" && bytes.Equal(raw, subjectOf(node))
}

// checkSubject compares bytes, so that nothing can be in a subject that another reader of it sees and we do not.
func checkSubject(in *Inputs) *fault {
	if isSubjectOf(in.Request.X509.RawSubject, in.Request.Node()) {
		return nil
	}
	return &fault{ReasonSubjectWrong, fmt.Sprintf("The subject is %q; it must be exactly O=%s,CN=%sNAME, as a kubelet writes it",
		in.Request.X509.Subject.String(), nodesGroup, nodePrefix)}
}

var (
	oidExtensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// contents are all bytes that a kubelet signs for the request's own subject and key and these names. Comparing them finds
// everything else at once: other extensions and attributes, other kinds of names, addresses of the wrong length, twice the same,
// another version, another encoding.
func contents(r *x509.CertificateRequest, names []string, addresses []net.IP) []byte {
	attributes := []asn1.RawValue{}
	if len(names)+len(addresses) > 0 {
		var alt []asn1.RawValue
		for _, name := range names {
			alt = append(alt, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(name)})
		}
		for _, address := range addresses {
			if short := address.To4(); short != nil {
				address = short
			}
			alt = append(alt, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: address})
		}
		attributes = append(attributes, asn1.RawValue{FullBytes: mustMarshal(struct {
			Type  asn1.ObjectIdentifier
			Value [][]pkix.Extension `asn1:"set"`
		}{oidExtensionRequest, [][]pkix.Extension{{{Id: oidSubjectAltName, Value: mustMarshal(alt)}}}})})
	}
	return mustMarshal(struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0"`
	}{0, asn1.RawValue{FullBytes: r.RawSubject}, asn1.RawValue{FullBytes: r.RawSubjectPublicKeyInfo}, attributes})
}

// mustMarshal is for values of types that can always be encoded; nil otherwise, which equals no request.
func mustMarshal(value any) []byte {
	raw, err := asn1.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}

func checkContents(r *x509.CertificateRequest, names []string, addresses []net.IP) *fault {
	if bytes.Equal(r.RawTBSCertificateRequest, contents(r, names, addresses)) {
		return nil
	}
	found := []string{}
	for _, extension := range r.Extensions {
		if !extension.Id.Equal(oidSubjectAltName) {
			found = append(found, "the extension "+extension.Id.String())
		}
	}
	for _, name := range r.DNSNames[:len(r.DNSNames)-len(names)] {
		found = append(found, fmt.Sprintf("the name %q", name))
	}
	for _, address := range r.IPAddresses[:len(r.IPAddresses)-len(addresses)] {
		found = append(found, "the address "+address.String())
	}
	for _, address := range r.EmailAddresses {
		found = append(found, fmt.Sprintf("the e-mail address %q", address))
	}
	for _, uri := range r.URIs {
		found = append(found, fmt.Sprintf("the URI %q", uri))
	}
	if len(found) == 0 {
		found = append(found, "an attribute, a kind of name or an encoding of its own")
	}
	return &fault{ReasonContentsWrong, "The request has what no kubelet sends for this: " + list(found)}
}

// checkKey takes the keys that every component of Kubernetes works with. Kubelets make P-256 keys; no kubelet ever made an Ed25519
// key.
func checkKey(in *Inputs) *fault {
	switch key := in.Request.X509.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 && key.E >= 65537 {
			return nil
		}
		return &fault{ReasonKeyWeak, fmt.Sprintf("The key is RSA with %d bits and exponent %d; it must have 2048 bits and 65537", key.N.BitLen(), key.E)}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return &fault{ReasonKeyWeak, fmt.Sprintf("The key is on the curve %s; it must be P-256, P-384 or P-521", key.Params().Name)}
	}
	return &fault{ReasonKeyWeak, fmt.Sprintf("The key is of the kind %s; it must be RSA or ECDSA", in.Request.X509.PublicKeyAlgorithm)}
}

// strongSignatures leave out SHA-1, which x509 still verifies in requests, and what no key that is strong enough signs with.
var strongSignatures = []x509.SignatureAlgorithm{
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
	x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
}

func checkSignature(in *Inputs) *fault {
	if algorithm := in.Request.X509.SignatureAlgorithm; !slices.Contains(strongSignatures, algorithm) {
		return &fault{ReasonSignatureWeak, fmt.Sprintf("The request is signed with %s; it must be SHA-256 or better", algorithm)}
	}
	if !plainAlgorithm(in.Request.X509) {
		return &fault{ReasonSignatureWeak, "The algorithm of the signature has parameters that no kubelet sends"}
	}
	return nil
}

// plainAlgorithm reports whether the name of the algorithm, which is not signed, is in the bytes that a kubelet sends: without parameters
// for ECDSA, with NULL for RSA. Those of RSA-PSS are parsed strictly by package x509.
func plainAlgorithm(r *x509.CertificateRequest) bool {
	var whole struct {
		Signed    asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if rest, err := asn1.Unmarshal(r.Raw, &whole); err != nil || len(rest) > 0 {
		return false
	}
	if slices.Contains([]x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA}, r.SignatureAlgorithm) {
		return bytes.Equal(whole.Algorithm.Parameters.FullBytes, asn1.NullBytes)
	}
	if slices.Contains([]x509.SignatureAlgorithm{x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512}, r.SignatureAlgorithm) {
		return len(whole.Algorithm.Parameters.FullBytes) == 0
	}
	return true
}

func checkAge(in *Inputs) *fault {
	most := in.Policy.MaxAge
	if most == 0 {
		most = DefaultMaxAge
	}
	switch age := in.Now.Sub(in.Request.Created); {
	case age > most:
		return &fault{ReasonRequestTooOld, fmt.Sprintf("The request is %s old, at most %s are allowed; delete it, and the kubelet makes another",
			age, most)}
	case age < -ClockSkew:
		return &fault{ReasonRequestFromTheFuture, fmt.Sprintf("The request was made %s from now; see whether the clocks agree", -age)}
	}
	return nil
}
