package approver_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver"
)

// hostile is one request that must not be approved, made from one that is approved.
type hostile struct {
	name string
	from func() (*ask, *world)
	do   func(a *ask, w *world)
	want string
}

func joiner() (*ask, *world) { return joining("new-0") }
func server() (*ask, *world) {
	return serving("old-0", "old-0", "192.0.2.20")
}
func renewer() (*ask, *world) { return renewing("other-0", "other-0", "192.0.2.40") }

// sans replaces the names by raw general names.
func sans(names ...[]byte) func(*ask, *world) {
	return func(a *ask, _ *world) { a.with("old-0", extensions(altName(names...))) }
}

// showing renews for names with a certificate that has been changed.
func showing(subject pkix.Name, change func(*x509.Certificate)) func(*ask, *world) {
	return func(a *ask, w *world) {
		w.Shown = shown(cluster(), subject, a.template.DNSNames, a.template.IPAddresses, change)
	}
}

// asking asks for names, and the kubelet shows a certificate that has them already: somebody once approved it.
func asking(names ...string) func(*ask, *world) {
	return func(a *ask, w *world) {
		a.names(names...)
		w.Shown = shown(cluster(), a.template.Subject, a.template.DNSNames, a.template.IPAddresses, nil)
	}
}

func sent(change func(der []byte) []byte) func(*ask, *world) {
	return func(a *ask, _ *world) { a.send = change }
}

func requestPEM(der []byte) []byte { return pemOf("CERTIFICATE REQUEST", der) }

// The corpus. The name says what somebody tries, the reason why it is not approved.
var corpus = []hostile{
	// Who asks.
	{"a node asks for the client certificate of a new one", joiner, func(a *ask, _ *world) { a.csr.Spec.Username = "system:node:old-0" }, approver.ReasonRequestorWrong},
	{"a service account of another namespace", joiner, func(a *ask, _ *world) { a.csr.Spec.Username = "system:serviceaccount:default:node-bootstrapper" }, approver.ReasonRequestorWrong},
	{"another service account of that namespace", joiner, func(a *ask, _ *world) {
		a.csr.Spec.Username = "system:serviceaccount:openshift-machine-config-operator:machine-config-server"
	}, approver.ReasonRequestorWrong},
	{"a look-alike of the bootstrapper", joiner, func(a *ask, _ *world) {
		a.csr.Spec.Username = strings.Replace(a.csr.Spec.Username, "node-bootstrapper", "node-bооtstrapper", 1)
	}, approver.ReasonRequestorWrong},
	{"the bootstrapper with a space behind", joiner, func(a *ask, _ *world) { a.csr.Spec.Username += " " }, approver.ReasonRequestorWrong},
	{"nobody", joiner, func(a *ask, _ *world) { a.csr.Spec.Username = "" }, approver.ReasonRequestorWrong},
	{"an administrator", joiner, func(a *ask, _ *world) { a.csr.Spec.Username = "system:admin" }, approver.ReasonRequestorWrong},
	{"a bootstrap token where none may", joiner, func(a *ask, _ *world) {
		a.csr.Spec.Username, a.csr.Spec.Groups = "system:bootstrap:abcdef", slices.Clone(kubeadmGroups)
	}, approver.ReasonRequestorWrong},
	{"a bootstrap token that is none", joiner, func(a *ask, w *world) {
		w.Policy.BootstrapTokens = true
		a.csr.Spec.Username, a.csr.Spec.Groups = "system:bootstrap:abc.def", slices.Clone(kubeadmGroups)
	}, approver.ReasonRequestorWrong},
	{"a bootstrap token with a letter that none has", joiner, func(a *ask, w *world) {
		w.Policy.BootstrapTokens = true
		a.csr.Spec.Username, a.csr.Spec.Groups = "system:bootstrap:abcDef", slices.Clone(kubeadmGroups)
	}, approver.ReasonRequestorWrong},
	{"a bootstrap token with foreign groups", joiner, func(a *ask, w *world) {
		w.Policy.BootstrapTokens = true
		a.csr.Spec.Username, a.csr.Spec.Groups = "system:bootstrap:abcdef", append(slices.Clone(kubeadmGroups), "system:masters")
	}, approver.ReasonGroupsWrong},
	{"a foreign group", joiner, func(a *ask, _ *world) { a.csr.Spec.Groups = append(a.csr.Spec.Groups, "system:masters") }, approver.ReasonGroupsWrong},
	{"a group missing", joiner, func(a *ask, _ *world) { a.csr.Spec.Groups = a.csr.Spec.Groups[:2] }, approver.ReasonGroupsWrong},
	{"a group twice instead of another", joiner, func(a *ask, _ *world) { a.csr.Spec.Groups[1] = a.csr.Spec.Groups[0] }, approver.ReasonGroupsWrong},
	{"no groups", joiner, func(a *ask, _ *world) { a.csr.Spec.Groups = nil }, approver.ReasonGroupsWrong},
	{"a node asks for another node's serving certificate", server, func(a *ask, _ *world) { a.csr.Spec.Username = "system:node:other-0" }, approver.ReasonRequestorWrong},
	{"the bootstrapper asks for a serving certificate", server, func(a *ask, _ *world) {
		from, _ := joiner()
		a.csr.Spec.Username, a.csr.Spec.Groups = from.csr.Spec.Username, from.csr.Spec.Groups
	}, approver.ReasonRequestorWrong},
	{"a node's name in upper case", server, func(a *ask, _ *world) { a.csr.Spec.Username = "system:node:OLD-0" }, approver.ReasonRequestorWrong},
	{"a requestor that is not in the group of nodes", server, func(a *ask, _ *world) { a.csr.Spec.Groups = []string{"system:authenticated"} }, approver.ReasonGroupsWrong},
	{"a requestor that is not authenticated", server, func(a *ask, _ *world) { a.csr.Spec.Groups = []string{"system:nodes", "system:unauthenticated"} }, approver.ReasonGroupsWrong},
	{"a node that is a master of the cluster as well", server, func(a *ask, _ *world) { a.csr.Spec.Groups = append(a.csr.Spec.Groups, "system:masters") }, approver.ReasonGroupsWrong},
	{"a node that is an administrator of nodes", renewer, func(a *ask, _ *world) { a.csr.Spec.Groups = append(a.csr.Spec.Groups, "system:node-admins") }, approver.ReasonGroupsWrong},

	// For whom, and for what.
	{"the signer of any client", joiner, func(a *ask, _ *world) { a.csr.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName }, approver.ReasonOtherSigner},
	{"the signer of the old days", joiner, func(a *ask, _ *world) { a.csr.Spec.SignerName = "kubernetes.io/legacy-unknown" }, approver.ReasonOtherSigner},
	{"a signer that looks like it", joiner, func(a *ask, _ *world) { a.csr.Spec.SignerName += "/" }, approver.ReasonOtherSigner},
	{"no signer", joiner, func(a *ask, _ *world) { a.csr.Spec.SignerName = "" }, approver.ReasonOtherSigner},
	{"a client request sent to the signer of servers", joiner, func(a *ask, _ *world) { a.csr.Spec.SignerName = certificatesv1.KubeletServingSignerName }, approver.ReasonRequestorWrong},
	{"a serving request sent to the signer of clients", server, func(a *ask, _ *world) { a.csr.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName }, approver.ReasonRequestorWrong},
	{"a client that would also be a server", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageServerAuth) }, approver.ReasonUsagesWrong},
	{"a client that would also sign certificates", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageCertSign) }, approver.ReasonUsagesWrong},
	{"a client for any purpose", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages[1] = certificatesv1.UsageAny }, approver.ReasonUsagesWrong},
	{"a client that only signs", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages = a.csr.Spec.Usages[:1] }, approver.ReasonUsagesWrong},
	{"no usages", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages = nil }, approver.ReasonUsagesWrong},
	{"a usage twice", joiner, func(a *ask, _ *world) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageClientAuth) }, approver.ReasonUsagesWrong},
	{"a server that would also be a client", server, func(a *ask, _ *world) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageClientAuth) }, approver.ReasonUsagesWrong},
	{"a server that would sign code", server, func(a *ask, _ *world) {
		a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageCodeSigning)
	}, approver.ReasonUsagesWrong},
	{"a client certificate from the signer of servers", server, func(a *ask, _ *world) { a.csr.Spec.Usages[1] = certificatesv1.UsageClientAuth }, approver.ReasonUsagesWrong},

	// The subject.
	{"a second organization", joiner, func(a *ask, _ *world) {
		a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
	}, approver.ReasonSubjectWrong},
	{"another organization", joiner, func(a *ask, _ *world) { a.template.Subject.Organization = []string{"system:masters"} }, approver.ReasonSubjectWrong},
	{"no organization", joiner, func(a *ask, _ *world) { a.template.Subject.Organization = nil }, approver.ReasonSubjectWrong},
	{"an organizational unit", joiner, func(a *ask, _ *world) { a.template.Subject.OrganizationalUnit = []string{"system:masters"} }, approver.ReasonSubjectWrong},
	{"a common name without the prefix", joiner, func(a *ask, _ *world) { a.template.Subject.CommonName = "new-0" }, approver.ReasonSubjectWrong},
	{"a common name of a user", joiner, func(a *ask, _ *world) { a.template.Subject.CommonName = "system:admin" }, approver.ReasonSubjectWrong},
	{"a common name with the prefix in upper case", joiner, func(a *ask, _ *world) { a.template.Subject.CommonName = "System:Node:new-0" }, approver.ReasonSubjectWrong},
	{"the prefix without a name", joiner, func(a *ask, _ *world) { a.template.Subject.CommonName = "system:node:" }, approver.ReasonSubjectWrong},
	{"no subject", joiner, func(a *ask, _ *world) { a.template.Subject = pkix.Name{} }, approver.ReasonSubjectWrong},
	{"a serial number in the subject", joiner, func(a *ask, _ *world) { a.template.Subject.SerialNumber = "1" }, approver.ReasonSubjectWrong},
	{"two common names, the last of a node", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidOrganization, tagPrintable, "system:nodes"), attribute(oidCommonName, tagPrintable, "system:admin"),
			attribute(oidCommonName, tagPrintable, "system:node:new-0"))
	}, approver.ReasonSubjectWrong},
	{"two common names, the first of a node", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidOrganization, tagPrintable, "system:nodes"), attribute(oidCommonName, tagPrintable, "system:node:new-0"),
			attribute(oidCommonName, tagPrintable, "system:admin"))
	}, approver.ReasonSubjectWrong},
	{"the same attributes in one set", joiner, func(a *ask, _ *world) {
		a.subjected(slices.Concat(attribute(oidCommonName, tagPrintable, "system:node:new-0"), attribute(oidOrganization, tagPrintable, "system:nodes")))
	}, approver.ReasonSubjectWrong},
	{"the common name before the organization", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidCommonName, tagPrintable, "system:node:new-0"), attribute(oidOrganization, tagPrintable, "system:nodes"))
	}, approver.ReasonSubjectWrong},
	{"the organization in an encoding that others read otherwise", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidOrganization, asn1.TagT61String, "system:nodes"), attribute(oidCommonName, tagPrintable, "system:node:new-0"))
	}, approver.ReasonSubjectWrong},
	{"the common name as UTF-8, as no kubelet writes it", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidOrganization, tagPrintable, "system:nodes"), attribute(oidCommonName, tagUTF8, "system:node:new-0"))
	}, approver.ReasonSubjectWrong},
	{"an attribute that nobody knows", joiner, func(a *ask, _ *world) {
		a.subjected(attribute(oidOrganization, tagPrintable, "system:nodes"), attribute(oidCommonName, tagPrintable, "system:node:new-0"),
			attribute(asn1.ObjectIdentifier{1, 2, 3, 4}, tagPrintable, "x"))
	}, approver.ReasonSubjectWrong},
	{"a server with a second organization", server, func(a *ask, _ *world) {
		a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
	}, approver.ReasonSubjectWrong},
	{"a common name that is not the requestor", server, func(a *ask, _ *world) { a.template.Subject.CommonName = "system:node:other-0" }, approver.ReasonRequestorWrong},

	// The name of the node.
	{"a name that is not in the inventory", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("new-1") }, approver.ReasonNotInInventory},
	{"no inventory", joiner, func(_ *ask, w *world) { w.Inventory = nil }, approver.ReasonNotInInventory},
	{"the name in upper case", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("NEW-0") }, approver.ReasonNotInInventory},
	{"the name with a dot behind", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("new-0.") }, approver.ReasonNotInInventory},
	{"a look-alike of the name", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("nеw-0") }, approver.ReasonNotInInventory},
	{"the name with a zero-width space", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("new-0\u200b") }, approver.ReasonNotInInventory},
	{"the name with a zero byte", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("new-0\x00.example.com") }, approver.ReasonNotInInventory},
	{"the name in full width", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("ｎew-0") }, approver.ReasonNotInInventory},
	{"a name of 4,000 letters", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject(strings.Repeat("n", 4000)) }, approver.ReasonNotInInventory},
	{"the prefix twice", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("system:node:new-0") }, approver.ReasonNotInInventory},
	{"an address of a node as its name", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("new-0.example.com") }, approver.ReasonNotInInventory},
	{"a way out of the name", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("x/../new-0") }, approver.ReasonNotInInventory},
	{"a node that is there", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("old-0") }, approver.ReasonNodeExists},
	{"a second request of a node that has joined", joiner, func(_ *ask, w *world) { w.Nodes.Insert("new-0"); w.Approvals["new-0"] = 1 }, approver.ReasonNodeExists},
	{"a second request of a node that is about to join", joiner, func(_ *ask, w *world) { w.Approvals["new-0"] = 1 }, approver.ReasonCountUsedUp},
	{"a third request of a node that may join twice", joiner, func(a *ask, w *world) { a.template.Subject = nodeSubject("twice-0"); w.Approvals["twice-0"] = 2 }, approver.ReasonCountUsedUp},
	{"an egress IP of another node", renewer, func(a *ask, w *world) {
		a.names("other-0", "192.0.2.40", "198.51.100.7")
		w.Egress = egress("old-0", "198.51.100.7")
	}, approver.ReasonNamesNotProven},
	{"an address beside the egress IPs", renewer, func(a *ask, w *world) {
		a.names("other-0", "192.0.2.40", "198.51.100.9")
		w.Egress = egress("other-0", "198.51.100.7", "198.51.100.8")
	}, approver.ReasonNamesNotProven},
	{"an egress IP in a first certificate", renewer, func(a *ask, w *world) {
		a.names("other-0", "198.51.100.7")
		w.Egress, w.Shown = egress("other-0", "198.51.100.7"), nil
	}, approver.ReasonNamesNotProven},
	{"an egress IP and fewer names than before", renewer, func(a *ask, w *world) {
		a.names("192.0.2.40", "198.51.100.7")
		w.Egress = egress("other-0", "198.51.100.7")
	}, approver.ReasonNamesNotProven},
	{"an egress IP and nothing of the certificate", func() (*ask, *world) { return renewing("other-0", "192.0.2.40") }, func(a *ask, w *world) {
		a.names("198.51.100.7")
		w.Egress = egress("other-0", "198.51.100.7")
	}, approver.ReasonNamesNotProven},
	{"an egress IP beside a certificate that has ended", renewer, func(a *ask, w *world) {
		a.names("other-0", "192.0.2.40", "198.51.100.7")
		w.Egress = egress("other-0", "198.51.100.7")
		w.Shown = shown(cluster(), a.template.Subject, []string{"other-0"}, a.template.IPAddresses[:1], func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) })
	}, approver.ReasonNamesNotProven},
	{"approvals that could not be read", joiner, func(_ *ask, w *world) { w.Approvals = nil }, approver.ReasonApprovalsUnknown},
	{"a clock that could not be read", joiner, func(_ *ask, w *world) { w.Now = time.Time{} }, approver.ReasonInputsIncomplete},
	{"nodes that could not be read", joiner, func(_ *ask, w *world) { w.Nodes = nil }, approver.ReasonNodesUnknown},
	{"a server on a node that is not there", server, func(_ *ask, w *world) { w.Nodes.Delete("old-0") }, approver.ReasonNodeMissing},
	{"a server, and nodes that could not be read", server, func(_ *ask, w *world) { w.Nodes = nil }, approver.ReasonNodesUnknown},

	// When.
	{"a window that is not open yet", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("early-0") }, approver.ReasonWindowNotOpen},
	{"a window that has closed", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("late-0") }, approver.ReasonWindowClosed},
	{"a node that has no window", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("never-0") }, approver.ReasonNoWindow},
	{"a request that lay in wait for the window", joiner, func(a *ask, _ *world) { a.template.Subject = nodeSubject("just-0") }, approver.ReasonRequestedBeforeWindow},
	{"an old request, played again", joiner, func(a *ask, w *world) {
		a.csr.CreationTimestamp = metav1.NewTime(now.Add(-30*time.Minute - time.Second))
		w.Policy.MaxAge = 30 * time.Minute
	}, approver.ReasonRequestTooOld},
	{"a request of last year", server, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.NewTime(now.AddDate(-1, 0, 0)) }, approver.ReasonRequestTooOld},
	{"a request without an age", server, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.Time{} }, approver.ReasonRequestTooOld},
	{"a request that is two hours old", server, func(a *ask, _ *world) {
		a.csr.CreationTimestamp = metav1.NewTime(now.Add(-2*time.Hour - time.Second))
	}, approver.ReasonRequestTooOld},
	{"a request from the future", joiner, func(a *ask, _ *world) { a.csr.CreationTimestamp = metav1.NewTime(now.Add(time.Hour)) }, approver.ReasonRequestFromTheFuture},
	{"a request that was denied", joiner, func(a *ask, _ *world) {
		a.csr.Status.Conditions = append(a.csr.Status.Conditions, condition(certificatesv1.CertificateDenied))
	}, approver.ReasonAlreadyDecided},
	{"a request that was approved", server, func(a *ask, _ *world) {
		a.csr.Status.Conditions = append(a.csr.Status.Conditions, condition(certificatesv1.CertificateApproved))
	}, approver.ReasonAlreadyDecided},
	{"a request that could not be signed", joiner, func(a *ask, _ *world) {
		a.csr.Status.Conditions = append(a.csr.Status.Conditions, condition(certificatesv1.CertificateFailed))
	}, approver.ReasonAlreadyDecided},
	{"a request that is signed", server, func(a *ask, _ *world) { a.csr.Status.Certificate = []byte("x") }, approver.ReasonAlreadyDecided},

	// What else is in it.
	{"a client with a DNS name", joiner, func(a *ask, _ *world) { a.names("new-0") }, approver.ReasonContentsWrong},
	{"a client with an IP address", joiner, func(a *ask, _ *world) { a.names("192.0.2.10") }, approver.ReasonContentsWrong},
	{"a client with an e-mail address", joiner, func(a *ask, _ *world) { a.template.EmailAddresses = []string{"admin@example.com"} }, approver.ReasonContentsWrong},
	{"a client with a URI", joiner, func(a *ask, _ *world) {
		a.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/kube-system/sa/admin"}}
	}, approver.ReasonContentsWrong},
	{"a client that would be an authority", joiner, func(a *ask, _ *world) {
		a.template.ExtraExtensions = []pkix.Extension{{Id: oidBasicConstraints, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
	}, approver.ReasonContentsWrong},
	{"a client with a password", joiner, func(a *ask, _ *world) {
		a.with("new-0", sequence(marshal(oidChallengePassword), set(text(tagUTF8, "secret"))))
	}, approver.ReasonContentsWrong},
	{"a client with an empty list of extensions", joiner, func(a *ask, _ *world) { a.with("new-0", extensions()) }, approver.ReasonContentsWrong},
	{"a client of another version", joiner, func(a *ask, _ *world) {
		a.raw = func(a *ask) []byte { return body(1, nodeRDNs("new-0"), a.keyInfo()) }
	}, approver.ReasonContentsWrong},
	{"a client with something behind the attributes", joiner, func(a *ask, _ *world) {
		a.raw = func(a *ask) []byte {
			return sequence(marshal(0), nodeRDNs("new-0"), a.keyInfo(), tagged(0, true), text(tagUTF8, "more"))
		}
	}, approver.ReasonContentsWrong},
	{"a server with an e-mail address", server, func(a *ask, _ *world) { a.template.EmailAddresses = []string{"admin@example.com"} }, approver.ReasonContentsWrong},
	{"a server with a URI", server, func(a *ask, _ *world) { a.template.URIs = []*url.URL{{Scheme: "https", Host: "old-0"}} }, approver.ReasonContentsWrong},
	{"a server that would be an authority", server, func(a *ask, _ *world) {
		a.template.ExtraExtensions = []pkix.Extension{{Id: oidBasicConstraints, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
	}, approver.ReasonContentsWrong},
	{"a server that says how its key is used", server, func(a *ask, _ *world) {
		a.template.ExtraExtensions = []pkix.Extension{{Id: oidKeyUsage, Value: []byte{0x03, 0x02, 0x02, 0x04}}}
	}, approver.ReasonContentsWrong},
	{"a user's name among the names", server, sans(dns("old-0"), tagged(0, true, marshal(oidUserPrincipalName), tagged(0, true, text(tagUTF8, "admin")))), approver.ReasonContentsWrong},
	{"a directory name among the names", server, sans(dns("old-0"), tagged(4, true, nodeRDNs("old-0"))), approver.ReasonContentsWrong},
	{"a registered identifier among the names", server, sans(dns("old-0"), tagged(8, false, []byte{0x2a})), approver.ReasonContentsWrong},
	{"an IPv4-mapped IPv6 address", server, sans(dns("old-0"), tagged(7, false, net.ParseIP("192.0.2.20").To16())), approver.ReasonContentsWrong},
	{"an IPv4-mapped IPv6 address of somebody else", server, sans(dns("old-0"), tagged(7, false, net.ParseIP("192.0.2.99").To16())), approver.ReasonContentsWrong},
	{"an address with a mask", server, sans(dns("old-0"), tagged(7, false, []byte{192, 0, 2, 20, 255, 255, 255, 0})), approver.ReasonMalformed},
	{"names that are critical", server, func(a *ask, _ *world) {
		a.with("old-0", extensions(pkix.Extension{Id: oidAltName, Critical: true, Value: sequence(dns("old-0"))}))
	}, approver.ReasonContentsWrong},
	{"an attribute twice, with other names", server, func(a *ask, _ *world) {
		a.with("old-0", extensions(altName(dns("old-0"))), extensions(altName(dns("api.example.com"))))
	}, approver.ReasonMalformed},
	{"an extension twice, with other names", server, func(a *ask, _ *world) {
		a.with("old-0", extensions(altName(dns("old-0")), altName(dns("api.example.com"))))
	}, approver.ReasonMalformed},
	{"a server with a password", server, func(a *ask, _ *world) {
		a.with("old-0", extensions(altName(dns("old-0"))), sequence(marshal(oidChallengePassword), set(text(tagUTF8, "secret"))))
	}, approver.ReasonContentsWrong},

	// The names of a server.
	{"no name at all", server, func(a *ask, _ *world) { a.names() }, approver.ReasonNoNames},
	{"the API server", server, func(a *ask, _ *world) { a.names("old-0", "api.example.com") }, approver.ReasonNamesNotProven},
	{"the API server inside", server, func(a *ask, _ *world) { a.names("kubernetes.default.svc") }, approver.ReasonNamesNotPlain},
	{"the API server inside, which it has already", renewer, asking("other-0", "kubernetes"), approver.ReasonNamesNotPlain},
	{"localhost, which it has already", renewer, asking("other-0", "localhost"), approver.ReasonNamesNotPlain},
	{"the address of the API server", server, func(a *ask, _ *world) { a.names("old-0", "172.30.0.1") }, approver.ReasonNamesNotProven},
	{"another node", server, func(a *ask, _ *world) { a.names("old-0", "new-0") }, approver.ReasonNamesNotProven},
	{"the address of another node", server, func(a *ask, _ *world) { a.names("old-0", "192.0.2.10") }, approver.ReasonNamesNotProven},
	{"a subdomain of its own name", server, func(a *ask, _ *world) { a.names("x.old-0.example.com") }, approver.ReasonNamesNotProven},
	{"its domain", server, func(a *ask, _ *world) { a.names("example.com") }, approver.ReasonNamesNotProven},
	{"a wildcard", server, func(a *ask, _ *world) { a.names("*.example.com") }, approver.ReasonNamesNotPlain},
	{"a wildcard that it has already", renewer, asking("other-0", "*.example.com"), approver.ReasonNamesNotPlain},
	{"a wildcard in the middle", renewer, asking("other-*.example.com"), approver.ReasonNamesNotPlain},
	{"a name in upper case that it has already", renewer, asking("OTHER-0"), approver.ReasonNamesNotPlain},
	{"a name with a dot behind", renewer, asking("other-0.example.com."), approver.ReasonNamesNotPlain},
	{"an empty name", server, sans(dns("")), approver.ReasonNamesNotPlain},
	{"a name with a zero byte", server, sans(dns("old-0\x00.evil.example.com")), approver.ReasonNamesNotPlain},
	{"a name beyond ASCII", server, sans(dns("оld-0")), approver.ReasonMalformed},
	{"a name with an underscore", renewer, asking("other_0"), approver.ReasonNamesNotPlain},
	{"an address that passes for a name", renewer, func(a *ask, w *world) {
		a.template.DNSNames = append(a.template.DNSNames, "192.0.2.1")
		w.Shown = shown(cluster(), a.template.Subject, a.template.DNSNames, a.template.IPAddresses, nil)
	}, approver.ReasonNamesNotPlain},
	{"loopback, which it has already", renewer, asking("other-0", "127.0.0.1"), approver.ReasonNamesNotPlain},
	{"IPv6 loopback, which it has already", renewer, asking("other-0", "::1"), approver.ReasonNamesNotPlain},
	{"every address, which it has already", renewer, asking("other-0", "0.0.0.0"), approver.ReasonNamesNotPlain},
	{"multicast, which it has already", renewer, asking("other-0", "224.0.0.1"), approver.ReasonNamesNotPlain},
	{"link-local, which it has already", renewer, asking("other-0", "fe80::1"), approver.ReasonNamesNotPlain},
	{"a name of 300 letters", renewer, asking(strings.Repeat("a.", 150) + "a"), approver.ReasonNamesNotPlain},

	// The certificate that the kubelet shows.
	{"nobody answers", renewer, func(_ *ask, w *world) { w.Shown = nil }, approver.ReasonNamesNotProven},
	{"an empty chain", renewer, func(_ *ask, w *world) { w.Shown.Chain = nil }, approver.ReasonNamesNotProven},
	{"an authority that is not known", renewer, func(_ *ask, w *world) { w.Shown.Roots = nil }, approver.ReasonNamesNotProven},
	{"a certificate of another authority", renewer, func(a *ask, w *world) {
		w.Shown = shown(newAuthority("others"), a.template.Subject, a.template.DNSNames, a.template.IPAddresses, nil)
	}, approver.ReasonNamesNotProven},
	{"a certificate signed by itself", renewer, func(a *ask, w *world) {
		own := shown(cluster(), a.template.Subject, a.template.DNSNames, a.template.IPAddresses, nil)
		leaf := own.Chain[0]
		own.Chain = []*x509.Certificate{certificate(leaf, leaf, key("shown").Public(), key("shown"))}
		w.Shown = own
	}, approver.ReasonNamesNotProven},
	{"the certificate of another node", renewer, showing(nodeSubject("old-0"), nil), approver.ReasonNamesNotProven},
	{"a certificate with the right name and another organization", renewer, showing(pkix.Name{Organization: []string{"system:masters"}, CommonName: "system:node:other-0"}, nil), approver.ReasonNamesNotProven},
	{"a certificate with the right names and another common name", renewer, showing(pkix.Name{CommonName: "other-0"}, nil), approver.ReasonNamesNotProven},
	{"a client certificate of the node", renewer, showing(nodeSubject("other-0"), func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), approver.ReasonNamesNotProven},
	{"a certificate that has ended", renewer, showing(nodeSubject("other-0"), func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), approver.ReasonNamesNotProven},
	{"a certificate that is not valid yet", renewer, showing(nodeSubject("other-0"), func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) }), approver.ReasonNamesNotProven},
	{"one name more than the certificate has", renewer, func(a *ask, _ *world) { a.names("other-0", "192.0.2.40", "api.example.com") }, approver.ReasonNamesNotProven},
	{"one address more than the certificate has", renewer, func(a *ask, _ *world) { a.names("other-0", "192.0.2.40", "192.0.2.41") }, approver.ReasonNamesNotProven},
	{"a name as an address, an address as a name", renewer, func(a *ask, w *world) {
		a.names("192.0.2.20", "other-0")
		w.Shown = shown(cluster(), a.template.Subject, []string{"other-0", "192.0.2.20"}, nil, nil)
	}, approver.ReasonNamesNotProven},
	{"a subdomain of a wildcard that the certificate has", renewer, func(a *ask, w *world) {
		a.names("x.example.com")
		w.Shown = shown(cluster(), a.template.Subject, []string{"*.example.com"}, nil, nil)
	}, approver.ReasonNamesNotProven},

	// The key and the signature.
	{"RSA with 1024 bits", joiner, func(a *ask, _ *world) { a.key = key("rsa1024") }, approver.ReasonKeyWeak},
	{"RSA with 1024 bits for a server", server, func(a *ask, _ *world) { a.key = key("rsa1024") }, approver.ReasonKeyWeak},
	{"RSA with the exponent 3", joiner, func(a *ask, _ *world) { a.key = key("rsa-cube") }, approver.ReasonKeyWeak},
	{"a small curve", joiner, func(a *ask, _ *world) { a.key = key("p224") }, approver.ReasonKeyWeak},
	{"a small curve for a server", server, func(a *ask, _ *world) { a.key = key("p224") }, approver.ReasonKeyWeak},
	{"Ed25519", joiner, func(a *ask, _ *world) { a.key = key("ed25519") }, approver.ReasonKeyWeak},
	{"SHA-1", joiner, func(a *ask, _ *world) {
		a.send = func([]byte) []byte {
			return requestPEM(signedWith(body(0, nodeRDNs("new-0"), a.keyInfo()), a.key, oidECDSAWithSHA1))
		}
	}, approver.ReasonSignatureWeak},
	{"SHA-1 for a server", server, func(a *ask, _ *world) {
		a.send = func([]byte) []byte {
			return requestPEM(signedWith(body(0, nodeRDNs("old-0"), a.keyInfo(), extensions(altName(dns("old-0")))), a.key, oidECDSAWithSHA1))
		}
	}, approver.ReasonSignatureWeak},
	{"an RSA signature with parameters that are not signed", joiner, func(a *ask, _ *world) {
		a.key = key("rsa2048")
		a.send = func([]byte) []byte {
			return requestPEM(signedAs(body(0, nodeRDNs("new-0"), a.keyInfo()), a.key, sequence(marshal(oidSHA256WithRSA), []byte{0x0d, 0x00})))
		}
	}, approver.ReasonSignatureWeak},
	{"an ECDSA signature with parameters that are not signed", joiner, func(a *ask, _ *world) {
		a.send = func([]byte) []byte {
			return requestPEM(signedAs(body(0, nodeRDNs("new-0"), a.keyInfo()), a.key, sequence(marshal(oidECDSAWithSHA256), []byte{0x05, 0x00})))
		}
	}, approver.ReasonSignatureWeak},
	{"RSA with more bits than anybody verifies", joiner, sent(func([]byte) []byte { return requestPEM(hugeKey()) }), approver.ReasonKeyTooLarge},
	{"a key of another, whose secret it does not have", joiner, func(a *ask, _ *world) {
		a.send = func([]byte) []byte {
			other := &ask{key: key("other")}
			return requestPEM(signed(body(0, nodeRDNs("new-0"), other.keyInfo()), a.key))
		}
	}, approver.ReasonBadSignature},
	{"a name that was changed after it was signed", joiner, sent(func(der []byte) []byte {
		return requestPEM(bytes.Replace(der, []byte("system:node:new-0"), []byte("system:node:old-0"), 1))
	}), approver.ReasonBadSignature},

	// The envelope.
	{"nothing", joiner, sent(func([]byte) []byte { return nil }), approver.ReasonNotPEM},
	{"no PEM", joiner, sent(func(der []byte) []byte { return der }), approver.ReasonNotPEM},
	{"PEM that is cut off", joiner, sent(func(der []byte) []byte { return requestPEM(der)[:200] }), approver.ReasonNotPEM},
	{"a certificate", server, sent(func([]byte) []byte { return pemOf("CERTIFICATE", cluster().certificate.Raw) }), approver.ReasonPEMType},
	{"the old name of the block", joiner, sent(func(der []byte) []byte { return pemOf("NEW CERTIFICATE REQUEST", der) }), approver.ReasonPEMType},
	{"a certificate in a block of the right name", joiner, sent(func([]byte) []byte { return requestPEM(cluster().certificate.Raw) }), approver.ReasonMalformed},
	{"two blocks", joiner, sent(func(der []byte) []byte { return slices.Concat(requestPEM(der), requestPEM(der)) }), approver.ReasonPEMSurplus},
	{"a block of another kind behind it", joiner, sent(func(der []byte) []byte { return slices.Concat(requestPEM(der), pemOf("CERTIFICATE", der)) }), approver.ReasonPEMSurplus},
	{"text before the block", joiner, sent(func(der []byte) []byte { return slices.Concat([]byte("hello\n"), requestPEM(der)) }), approver.ReasonPEMSurplus},
	{"text behind the block", joiner, sent(func(der []byte) []byte { return slices.Concat(requestPEM(der), []byte("hello\n")) }), approver.ReasonPEMSurplus},
	{"an empty line behind the block", joiner, sent(func(der []byte) []byte { return slices.Concat(requestPEM(der), []byte("\n")) }), approver.ReasonPEMSurplus},
	{"headers in the block", joiner, sent(func(der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: der})
	}), approver.ReasonPEMSurplus},
	{"a broken block before the right one", joiner, sent(func(der []byte) []byte {
		return slices.Concat([]byte("-----BEGIN CERTIFICATE REQUEST-----\n!\n-----END CERTIFICATE REQUEST-----\n"), requestPEM(der))
	}), approver.ReasonPEMSurplus},
	{"bytes behind the request", joiner, sent(func(der []byte) []byte { return requestPEM(append(der, 0)) }), approver.ReasonMalformed},
	{"garbage in the block", joiner, sent(func([]byte) []byte { return requestPEM([]byte("garbage")) }), approver.ReasonMalformed},
	{"an empty block", joiner, sent(func([]byte) []byte { return requestPEM(nil) }), approver.ReasonMalformed},
	{"more than anybody reads", joiner, sent(func([]byte) []byte { return requestPEM(make([]byte, approver.MaxRequestBytes)) }), approver.ReasonTooLarge},
	{"more names than anybody has", server, func(a *ask, _ *world) {
		for range 2000 {
			a.template.DNSNames = append(a.template.DNSNames, "old-0.example.com")
		}
	}, approver.ReasonTooLarge},
}

var kubeadmGroups = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"}

// hugeKey is a request with a key that takes seconds to verify anything with. Its signature is none.
func hugeKey() []byte {
	n := new(big.Int).Lsh(big.NewInt(1), 10000)
	raw, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 1<<31 - 1})
	if err != nil {
		panic(err)
	}
	junk := make([]byte, 1250)
	_, _ = rand.Read(junk)
	sha256WithRSA := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
	return sequence(body(0, nodeRDNs("new-0"), raw), sequence(marshal(sha256WithRSA), marshal(asn1.NullRawValue)), marshal(asn1.BitString{Bytes: junk, BitLength: 8 * len(junk)}))
}

// TestHostile shows R-APP-2: nothing is approved on the word of the request alone.
func TestHostile(t *testing.T) {
	if len(corpus) < 60 {
		t.Errorf("only %d cases", len(corpus))
	}
	names, approved, reasons := map[string]bool{}, 0, map[string]bool{}
	for _, tt := range corpus {
		if names[tt.name] {
			t.Errorf("%q is there twice", tt.name)
		}
		names[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			if a, w := tt.from(); !a.decided(t, w).Approve {
				t.Fatal("what it is made from is not approved")
			}
			a, w := tt.from()
			tt.do(a, w)
			got := a.decided(t, w)
			if got.Approve {
				approved++
				t.Error("approved")
			}
			if got.Reason != tt.want || got.Message == "" {
				t.Errorf("%s (%s), want %s", got.Reason, got.Message, tt.want)
			}
			reasons[got.Reason] = true
		})
	}
	t.Logf("%d hostile requests, %d approved, %d different reasons", len(corpus), approved, len(reasons))
}

// Every check is needed: without it, something of the corpus would be approved. So no check is dead, and none can be dropped.
func TestEveryCheckIsNeeded(t *testing.T) {
	readable := map[string]approver.Inputs{}
	for _, tt := range corpus {
		a, w := tt.from()
		tt.do(a, w)
		a.csr.Spec.Request = a.pem(t)
		if request, err := approver.Parse(&a.csr); err == nil {
			w.Request = request
			readable[tt.name] = w.Inputs
		}
	}
	for _, flow := range []approver.Flow{approver.ClientFlow, approver.ServingFlow} {
		for i, left := range approver.Checks(flow) {
			others := slices.Delete(slices.Clone(approver.Checks(flow)), i, i+1)
			var through []string
			for name, in := range readable {
				if in.Request.Flow() == flow && approver.DecideBy(in, others).Approve {
					through = append(through, name)
				}
			}
			if len(through) == 0 {
				t.Errorf("without the check %s of the flow %s nothing more would be approved", left.Name, flow)
				continue
			}
			t.Logf("%s without %s: %d, such as %q", flow, left.Name, len(through), slices.Min(through))
		}
	}
}
