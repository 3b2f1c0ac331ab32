// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	tokenPrefix  = "system:bootstrap:"
	tokenIDLen   = 6
	nodesUnknown = "The Nodes of the cluster could not be read"
)

var (
	nodeGroups         = []string{nodesGroup, "system:authenticated"}
	bootstrapperGroups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"}
	tokenGroups        = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"}
)

func checkUndecided(p *parsed) *Finding {
	return require(!Decided(p.Request), ReasonAlreadyDecided, "The request is approved, denied, failed or signed already")
}

func (p *parsed) isToken() bool {
	id, ok := strings.CutPrefix(p.Request.Spec.Username, tokenPrefix)
	return p.Policy.BootstrapTokens && ok && len(id) == tokenIDLen && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func checkBootstrapper(p *parsed) *Finding {
	user := p.Request.Spec.Username
	renewal := p.node != "" && user == nodePrefix+p.node && exactly(p.Request.Spec.Groups, nodeGroups)
	if renewal && checkUsages(p) == nil && checkContents(p) == nil {
		return refuse(ReasonRenewalByNode, "The node renews its own client certificate, which kube-controller-manager approves; "+
			"if it is pending for minutes, look at kube-controller-manager, or approve it by hand before the certificate ends")
	}
	return require(user == bootstrapper || p.isToken(), ReasonRequestorWrong, "The requestor is %q; it must be %s", user, bootstrapper)
}

// exactly reports whether have contains the values in want, in any order, and no others. want has no duplicates.
func exactly[T comparable](have, want []T) bool {
	return len(have) == len(want) && sets.New(have...).HasAll(want...)
}

func checkGroups(p *parsed) *Finding {
	want := bootstrapperGroups
	switch {
	case p.flow == ServingFlow:
		want = nodeGroups
	case p.isToken():
		want = tokenGroups
	}
	have := p.Request.Spec.Groups
	return require(exactly(have, want), ReasonGroupsWrong, "The groups of the requestor are %q; they must be exactly %q", have, want)
}

// checkUsages also accepts key encipherment: older kubelets request it for every key, newer ones for RSA keys
// (U-APP-5).
func checkUsages(p *parsed) *Finding {
	have, want := p.Request.Spec.Usages, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if p.flow == ServingFlow {
		want[1] = certificatesv1.UsageServerAuth
	}
	return require(exactly(have, want) || exactly(have, append(want, certificatesv1.UsageKeyEncipherment)), ReasonUsagesWrong,
		"The usages are %q; they must be exactly %q, optionally with %q", have, want, certificatesv1.UsageKeyEncipherment)
}

// isSubjectOf compares bytes: another parser cannot read another subject.
func isSubjectOf(raw []byte, node string) bool {
	name := pkix.Name{CommonName: nodePrefix + node, Organization: []string{nodesGroup}}
	return node != "" && bytes.Equal(raw, marshal(name.ToRDNSequence()))
}

func checkSubject(p *parsed) *Finding {
	return require(isSubjectOf(p.content.RawSubject, p.node), ReasonSubjectWrong,
		"The subject is %q; it must be exactly O=%s,CN=%sNAME, encoded as by a kubelet", p.content.Subject, nodesGroup, nodePrefix)
}

var (
	oidExtensionRequest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	oidSubjectAltName   = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// contentsOf returns the bytes that a kubelet signs for these names with the request's subject and key.
func contentsOf(r *x509.CertificateRequest, names []string, addresses []net.IP) []byte {
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
	attributes := []asn1.RawValue{}
	if len(alt) > 0 {
		attributes = append(attributes, asn1.RawValue{FullBytes: marshal(struct {
			Type  asn1.ObjectIdentifier
			Value [][]pkix.Extension `asn1:"set"`
		}{oidExtensionRequest, [][]pkix.Extension{{{Id: oidSubjectAltName, Value: marshal(alt)}}}})})
	}
	return marshal(struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0"`
	}{0, asn1.RawValue{FullBytes: r.RawSubject}, asn1.RawValue{FullBytes: r.RawSubjectPublicKeyInfo}, attributes})
}

// marshal returns nil, which equals no request, for a value that cannot be encoded.
func marshal(value any) []byte {
	raw, err := asn1.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}

func checkContents(p *parsed) *Finding {
	var names []string
	var addresses []net.IP
	allowed := "the subject and the key"
	if p.flow == ServingFlow {
		names, addresses, allowed = p.content.DNSNames, p.content.IPAddresses, "the subject, the key, DNS names and IP addresses"
	}
	return require(bytes.Equal(p.content.RawTBSCertificateRequest, contentsOf(p.content, names, addresses)), ReasonContentsWrong,
		"The request has a name, an extension, an attribute or an encoding that no kubelet sends with %s", allowed)
}

// checkKey accepts keys that all components of Kubernetes support. Kubelets create no Ed25519 keys.
func checkKey(p *parsed) *Finding {
	switch key := p.content.PublicKey.(type) {
	case *rsa.PublicKey:
		return require(key.N.BitLen() >= 2048 && key.E >= 65537, ReasonKeyWeak,
			"The key is RSA with %d bits and exponent %d; at least 2048 bits and 65537 are required", key.N.BitLen(), key.E)
	case *ecdsa.PublicKey:
		return require(key.Curve == elliptic.P256() || key.Curve == elliptic.P384() || key.Curve == elliptic.P521(), ReasonKeyWeak,
			"The key is on the curve %s; it must be P-256, P-384 or P-521", key.Params().Name)
	}
	return refuse(ReasonKeyWeak, "The key is %s; it must be RSA or ECDSA", p.content.PublicKeyAlgorithm)
}

// checkSignature refuses SHA-1, which x509 accepts in requests. The algorithm is not signed, so its parameters must be
// the bytes that a kubelet sends; x509 parses those of RSA-PSS strictly.
func checkSignature(p *parsed) *Finding {
	var whole struct {
		Signed    asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	rest, err := asn1.Unmarshal(p.content.Raw, &whole)
	plain, parameters := err == nil && len(rest) == 0, whole.Algorithm.Parameters.FullBytes
	switch p.content.SignatureAlgorithm { //nolint:exhaustive // the rest is refused
	case x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		plain = plain && len(parameters) == 0
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA:
		plain = plain && bytes.Equal(parameters, asn1.NullBytes)
	case x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
	default:
		return refuse(ReasonSignatureWeak, "The request is signed with %s; it must be SHA-256 or better", p.content.SignatureAlgorithm)
	}
	return require(plain, ReasonSignatureWeak, "The signature algorithm has parameters that no kubelet sends")
}

func checkAge(p *parsed) *Finding {
	limit := cmp.Or(p.Policy.MaxAge, DefaultMaxAge)
	switch age := p.Now.Sub(p.Request.CreationTimestamp.Time); {
	case age > limit:
		return refuse(ReasonRequestTooOld, "The request is %s old, at most %s are allowed; delete it, and the kubelet creates another", age, limit)
	case age < -clockSkew:
		return refuse(ReasonRequestFromTheFuture, "The request was created %s from now; check the clocks", -age)
	}
	return nil
}

func checkValidity(p *parsed) *Finding {
	limit, asked := cmp.Or(p.Policy.MaxValidity, DefaultMaxValidity), p.Request.Spec.ExpirationSeconds
	if asked == nil {
		return nil // the signer's
	}
	return require(time.Duration(*asked)*time.Second <= limit, ReasonValidityTooLong, "It asks for %s of validity, at most %s are allowed",
		time.Duration(*asked)*time.Second, limit)
}

// checkInventory refuses a request that is older than the window: it is not of the machine that was just started.
func checkInventory(p *parsed) *Finding {
	if p.entry == nil {
		return refuse(ReasonNotInInventory, "%q is not in the inventory", p.node)
	}
	created, window := p.Request.CreationTimestamp.Time, p.entry.Window
	switch {
	case window == nil:
		return refuse(ReasonNoWindow, "The inventory has no window in which %q may join", p.node)
	case p.Now.Before(window.NotBefore):
		return refuse(ReasonWindowNotOpen, "%q may not join before %s", p.node, timeText(window.NotBefore))
	case !p.Now.Before(window.NotAfter):
		return refuse(ReasonWindowClosed, "%q may not join since %s", p.node, timeText(window.NotAfter))
	case created.Before(window.NotBefore):
		return refuse(ReasonRequestedBeforeWindow, "The request was created at %s, before the window of %q opened at %s; "+
			"delete it, and the kubelet creates another", timeText(created), p.node, timeText(window.NotBefore))
	}
	return nil
}

func checkNodeAbsent(p *parsed) *Finding {
	switch {
	case p.Nodes == nil:
		return refuse(ReasonNodesUnknown, nodesUnknown)
	case p.Nodes.Has(p.node) && (p.entry == nil || !p.entry.Rejoin):
		return refuse(ReasonNodeExists, "There is a Node %q already, and the inventory does not allow it to rejoin", p.node)
	}
	return nil
}

func checkCount(p *parsed) *Finding {
	limit := 1
	if p.entry != nil {
		limit = p.entry.Count
	}
	switch approved := p.Approvals[p.node]; {
	case p.Approvals == nil:
		return refuse(ReasonApprovalsUnknown, "The approved requests of the cluster could not be read")
	case approved >= limit:
		return refuse(ReasonCountUsedUp, "The inventory allows %d approved requests for this node, and there are %d", limit, approved)
	}
	return nil
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
