// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha256" // what the oracle verifies with
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/approver/requests"
)

// The oracle decides which requests may be approved. It was written from the documentation, shares no code with the
// module, and parses bytes where the module calls a library.

// facts are what the oracle reads in the bytes of a request.
type facts struct {
	good      bool
	node      string
	names     []string // DNS names
	addresses []string // as their bytes
	bare      bool     // nothing but subject and key
	onlyNames bool     // nothing but these and the names
}

type proof struct {
	node             string
	names, addresses []string
}

func rawOf(addresses []netip.Addr) (texts []string) {
	for _, address := range addresses {
		texts = append(texts, string(address.AsSlice()))
	}
	return texts
}

// allows is the oracle. It does not verify what the kubelet presented: shown is what that proves, nil for nothing.
func (f facts) allows(in requests.Inputs, presented *proof) bool {
	csr := in.Request
	age := in.Now.Sub(csr.CreationTimestamp.Time)
	if !f.good || len(csr.Status.Conditions) != 0 || len(csr.Status.Certificate) != 0 || age > 2*time.Hour || age < -5*time.Minute || in.Nodes == nil {
		return false
	}
	_, exists := in.Nodes[f.node]
	e := in.Inventory.Node(f.node)
	listed := e != nil
	groups := slices.Sorted(slices.Values(csr.Spec.Groups))
	usages := ","
	for _, usage := range slices.Sorted(slices.Values(csr.Spec.Usages)) {
		usages += string(usage) + ","
	}
	usages = strings.Replace(usages, ",key encipherment,", ",", 1) // one of them may be there
	switch csr.Spec.SignerName {
	case "kubernetes.io/kube-apiserver-client-kubelet":
		user := csr.Spec.Username
		openshift := user == "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper" &&
			strings.Join(groups, " ") == "system:authenticated system:serviceaccounts system:serviceaccounts:openshift-machine-config-operator"
		kubeadm := in.Policy.BootstrapTokens && len(user) == len("system:bootstrap:xxxxxx") &&
			strings.HasPrefix(user, "system:bootstrap:") && alphanumeric(user[17:]) &&
			strings.Join(groups, " ") == "system:authenticated system:bootstrappers system:bootstrappers:kubeadm:default-node-token"
		return (openshift || kubeadm) && usages == ",client auth,digital signature," && f.bare && listed && e.Window != nil &&
			!in.Now.Before(e.Window.NotBefore) && in.Now.Before(e.Window.NotAfter) && !csr.CreationTimestamp.Time.Before(e.Window.NotBefore) &&
			(!exists || e.Rejoin) && in.Approvals[f.node] < e.Count
	case "kubernetes.io/kubelet-serving":
		if csr.Spec.Username != "system:node:"+f.node || strings.Join(groups, " ") != "system:authenticated system:nodes" ||
			usages != ",digital signature,server auth," || !f.onlyNames || !exists || len(f.names)+len(f.addresses) == 0 {
			return false
		}
		fromNode := presented != nil && presented.node == f.node
		renews := fromNode && in.EgressIPs.Node == f.node && sameNames(f.names, presented.names) && (len(f.names) > 0 || overlap(f.addresses, presented.addresses))
		for _, name := range f.names {
			proven := listed && slices.Contains(e.DNSNames, name) || fromNode && slices.Contains(presented.names, name)
			if !plainName(name) || !proven {
				return false
			}
		}
		for _, address := range f.addresses {
			proven := listed && slices.Contains(rawOf(e.Addresses), address) || fromNode && slices.Contains(presented.addresses, address) ||
				renews && slices.Contains(rawOf(in.EgressIPs.IPs), address)
			if !plainAddress(address) || !proven {
				return false
			}
		}
		return true
	}
	return false
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

func alphanumeric(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func plainName(name string) bool {
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || !alphanumeric(strings.ReplaceAll(label, "-", "")) {
			return false
		}
		last = label
	}
	short, end := strings.TrimSuffix(name, ".default"), "."+name
	labels := strings.Split(name, ".")
	first, local := labels[0], strings.TrimRight(labels[0], "46") == "localhost"
	reserved := strings.HasSuffix(end, ".localhost") || name != "svc" && strings.HasSuffix(end, ".svc") || len(labels) > 3 && labels[2] == "svc" ||
		len(labels) > 1 && (first == "api" || first == "api-int") ||
		local && len(first) < 11 && (len(labels) == 1 || len(labels) == 2 && strings.TrimRight(last, "46") == "localdomain" && len(last) < 13)
	return !reserved && len(name) <= 253 && strings.Trim(last, "0123456789") != "" && short != "kubernetes" && short != "openshift"
}

func plainAddress(a string) bool {
	switch len(a) {
	case 4:
		return a != "\x00\x00\x00\x00" && a != "\xff\xff\xff\xff" && a[0] != 127 && a[0]>>4 != 14 && a[:2] != "\xa9\xfe"
	case 16:
		zero := strings.Repeat("\x00", 10)
		linkLocal := a[0] == 0xfe && a[1]&0xc0 == 0x80
		return a[0] != 0xff && !linkLocal && !strings.HasPrefix(a, zero+"\xff\xff") &&
			a != zero+"\x00\x00\x00\x00\x00\x00" && a != zero+"\x00\x00\x00\x00\x00\x01"
	}
	return false
}

type element struct {
	tag        byte
	inner, all []byte
}

// split returns all elements; nil when it is not DER.
func split(der []byte) []element {
	list := []element{}
	for rest := der; len(rest) > 0; {
		if len(rest) < 2 || rest[0]&0x1f == 0x1f {
			return nil
		}
		length, head := int(rest[1]), 2
		switch {
		case length == 0x81 && len(rest) > 2 && rest[2] >= 0x80:
			length, head = int(rest[2]), 3
		case length == 0x82 && len(rest) > 3 && rest[2] != 0:
			length, head = int(rest[2])<<8|int(rest[3]), 4
		case length >= 0x80:
			return nil
		}
		if len(rest) < head+length {
			return nil
		}
		list = append(list, element{rest[0], rest[head : head+length], rest[:head+length]})
		rest = rest[head+length:]
	}
	return list
}

// parts returns the elements in a single element with that tag and number of elements, or nil.
func parts(der []byte, tag byte, want int) []element {
	list := split(der)
	if len(list) != 1 || list[0].tag != tag {
		return nil
	}
	if inner := split(list[0].inner); len(inner) == want {
		return inner
	}
	return nil
}

func read(text []byte) (f facts) {
	lines := strings.Split(string(text), "\n")
	if len(text) > 16384 || len(lines) < 4 || lines[0] != "-----BEGIN CERTIFICATE REQUEST-----" ||
		lines[len(lines)-2] != "-----END CERTIFICATE REQUEST-----" || lines[len(lines)-1] != "" {
		return f
	}
	lines = lines[1 : len(lines)-2]
	for i, line := range lines {
		if len(line) > 64 || len(line) == 0 || (i < len(lines)-1 && len(line) != 64) {
			return f
		}
	}
	der, err := base64.StdEncoding.Strict().DecodeString(strings.Join(lines, ""))
	if err != nil {
		return f
	}
	request := parts(der, 0x30, 3)
	if request == nil || !validSignature(request) {
		return f
	}
	info := parts(request[0].all, 0x30, 4)
	if info == nil || !bytes.Equal(info[0].all, []byte{2, 1, 0}) || info[3].tag != 0xa0 {
		return f
	}
	subject := parts(info[1].all, 0x30, 2)
	if subject == nil {
		return f
	}
	organization, ok := named(subject[0], "\x55\x04\x0a")
	name, isName := named(subject[1], "\x55\x04\x03")
	node, isNode := strings.CutPrefix(name, "system:node:")
	if !ok || !isName || !isNode || organization != "system:nodes" || node == "" {
		return f
	}
	f.good, f.node, f.bare = true, node, len(info[3].inner) == 0
	f.onlyNames = f.bare || f.readNames(info[3].inner)
	return f
}

func named(set element, oid string) (string, bool) {
	attributes := parts(set.all, 0x31, 1)
	if attributes == nil {
		return "", false
	}
	pair := parts(attributes[0].all, 0x30, 2)
	if pair == nil || pair[0].tag != 6 || string(pair[0].inner) != oid || pair[1].tag != 0x13 {
		return "", false
	}
	return string(pair[1].inner), true
}

// readNames reads an extension request that has only alternative names, DNS names first.
func (f *facts) readNames(attributes []byte) bool {
	attribute := parts(attributes, 0x30, 2)
	if attribute == nil || attribute[0].tag != 6 || string(attribute[0].inner) != "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e" {
		return false
	}
	extensions := parts(attribute[1].all, 0x31, 1)
	if extensions == nil {
		return false
	}
	one := parts(extensions[0].all, 0x30, 1)
	if one == nil {
		return false
	}
	extension := parts(one[0].all, 0x30, 2)
	if extension == nil || string(extension[0].all) != "\x06\x03\x55\x1d\x11" || extension[1].tag != 4 {
		return false
	}
	names := split(extension[1].inner)
	if len(names) != 1 || names[0].tag != 0x30 {
		return false
	}
	for _, name := range split(names[0].inner) {
		switch {
		case name.tag == 0x82 && len(f.addresses) == 0 && !strings.ContainsFunc(string(name.inner), func(c rune) bool { return c >= 0x80 }):
			f.names = append(f.names, string(name.inner))
		case name.tag == 0x87 && (len(name.inner) == 4 || len(name.inner) == 16):
			f.addresses = append(f.addresses, string(name.inner))
		default:
			return false
		}
	}
	return len(f.names)+len(f.addresses) > 0 && len(split(names[0].inner)) == len(f.names)+len(f.addresses)
}

func validSignature(request []element) bool {
	info := split(request[0].inner)
	if len(info) < 3 || request[1].tag != 0x30 || request[2].tag != 3 || len(request[2].inner) < 2 || request[2].inner[0] != 0 {
		return false
	}
	public, err := x509.ParsePKIXPublicKey(info[2].all)
	if err != nil {
		return false
	}
	const ecdsaOID = "\x06\x08\x2a\x86\x48\xce\x3d\x04\x03"
	hash, known := map[string]crypto.Hash{
		ecdsaOID + "\x02": crypto.SHA256, ecdsaOID + "\x03": crypto.SHA384, ecdsaOID + "\x04": crypto.SHA512,
		"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\x00": crypto.SHA256,
	}[string(request[1].inner)]
	if !known {
		return false
	}
	isRSA := !strings.HasPrefix(string(request[1].inner), ecdsaOID)
	digest := hash.New()
	digest.Write(request[0].all)
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		return !isRSA && public.Params().BitSize >= 256 && ecdsa.VerifyASN1(public, digest.Sum(nil), request[2].inner[1:])
	case *rsa.PublicKey:
		return isRSA && public.Size() >= 256 && public.Size() <= 1024 && public.E >= 65537 &&
			rsa.VerifyPKCS1v15(public, hash, digest.Sum(nil), request[2].inner[1:]) == nil
	}
	return false
}
