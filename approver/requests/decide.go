// SPDX-License-Identifier: Apache-2.0

// Package requests decides whether certificate signing requests of nodes may be approved where no Machine confirms a
// node's identity (R-APP-2, R-APP-4). It is pure and never denies a request. [Decide] approves when every check of the
// request's flow passes.
package requests

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/inventory"
)

// DefaultMaxAge is the maximum age of a request. The stock approver accepts requests for two hours after the Machine
// was created.
const DefaultMaxAge = 2 * time.Hour

// DefaultMaxValidity is the maximum validity that a request may ask for. The signer shortens it to its own.
const DefaultMaxValidity = 366 * 24 * time.Hour

const clockSkew = 5 * time.Minute // how far the clock of the API server may be ahead

// Policy has the configurable rules. The zero value is the strictest that works on OpenShift.
type Policy struct {
	MaxAge          time.Duration // maximum age of a request; 0 means DefaultMaxAge
	MaxValidity     time.Duration // maximum validity that a request asks for; 0 means DefaultMaxValidity
	BootstrapTokens bool          // accept client requests of kubeadm's bootstrap tokens as well
}

// Inputs are the inputs of a decision. Request and Now are required; without others, the checks that need them fail.
type Inputs struct {
	Request            *certificatesv1.CertificateSigningRequest
	Nodes              sets.Set[string]     // names of all Nodes; nil when they were not read
	Inventory          *inventory.Inventory // the second source; may be nil
	KubeletCertificate *KubeletCertificate  // by the node's kubelet, now; nil when it was not called or did not answer
	EgressIPs          EgressIPs            // proves nothing without KubeletCertificate
	Approvals          map[string]int       // counts the requests of the cluster by ApprovedFor; nil when they were not read
	Now                time.Time
	Policy             Policy
}

// KubeletCertificate is the chain that a kubelet presented at its own address, leaf first, and the authorities of
// kubelets.
type KubeletCertificate struct {
	Chain []*x509.Certificate
	Roots *x509.CertPool
}

// EgressIPs are the egressIPs of a node's HostSubnet (OpenShift SDN), which its kubelet requests at renewal. Ranges
// prove nothing.
type EgressIPs struct {
	Node string
	IPs  []netip.Addr
}

// Finding is the result of one check. Message states what a passed check proves, or what is wrong or missing.
type Finding struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
}

func refuse(reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func require(ok bool, reason, format string, args ...any) *Finding {
	if ok {
		return nil
	}
	return refuse(reason, format, args...)
}

// Verdict is the decision on one request.
type Verdict struct {
	Approve  bool      `json:"approve"`
	Reason   string    `json:"reason"` // of the first check that failed, or one of the two that approve
	Message  string    `json:"message"`
	Flow     Flow      `json:"flow,omitempty"`
	Node     string    `json:"node,omitempty"`
	Findings []Finding `json:"findings,omitempty"` // of all checks of the flow, in order
}

// NeedsKubeletCertificate reports whether only the names are not proven, so that calling the kubelet may help.
func (v Verdict) NeedsKubeletCertificate() bool {
	missing := failed(v)
	return len(missing) == 1 && missing[0].Reason == ReasonNamesNotProven
}

func failed(v Verdict) []Finding {
	return slices.DeleteFunc(slices.Clone(v.Findings), func(f Finding) bool { return f.OK })
}

// parsed is a parsed request with the other inputs.
type parsed struct {
	Inputs
	content *x509.CertificateRequest
	flow    Flow
	node    string          // in the common name
	entry   *inventory.Node // of the node; may be nil
}

// Decide approves a request if two sources confirm it (R-APP-2).
func Decide(in Inputs) Verdict {
	if in.Request == nil || in.Now.IsZero() {
		return Verdict{Reason: ReasonInputsIncomplete, Message: "The request or the time is missing"}
	}
	content, failure := parse(in.Request.Spec.Request)
	if failure != nil {
		return Verdict{Reason: failure.Reason, Message: failure.Message}
	}
	return decide(in, content, checks[flowOf(in.Request)])
}

func decide(in Inputs, content *x509.CertificateRequest, checks []check) Verdict {
	p := &parsed{Inputs: in, content: content, flow: flowOf(in.Request), node: nodeOf(content)}
	p.entry = in.Inventory.Node(p.node)
	v := Verdict{Flow: p.flow, Node: p.node}
	if p.flow == OtherFlow {
		v.Reason, v.Message = ReasonOtherSigner, "The request is for another signer"
		return v
	}
	v.Approve, v.Reason, v.Message = true, p.source(), "Everything was proven"
	for _, check := range checks {
		finding := check.evaluate(p)
		if finding == nil {
			finding = &Finding{OK: true, Message: check.proves}
		} else if v.Approve {
			v.Approve, v.Reason, v.Message = false, finding.Reason, finding.Message
		}
		finding.Check = check.name
		v.Findings = append(v.Findings, *finding)
	}
	return v
}

// check is independent of other checks. evaluate returns nil when the request passes.
type check struct {
	name, proves string
	evaluate     func(*parsed) *Finding
}

// The sources of a client request are the bootstrapper's secret, which every pod can read, and the inventory (R-APP-4).
// Those of a serving request are the node's client certificate and, for each name, the inventory or the kubelet's
// current certificate.
var checks = map[Flow][]check{
	OtherFlow: nil,
	ClientFlow: {
		{"Undecided", "the request is not decided yet", checkUndecided},
		{"Requestor", "the bootstrapper created it", checkBootstrapper},
		{"Groups", "the requestor is in the bootstrapper's groups and in no others", checkGroups},
		{"Usages", "the certificate is for clients only", checkUsages},
		{"Subject", "the subject is exactly that of a node", checkSubject},
		{"Contents", "it contains nothing but the subject and the key", checkContents},
		{"Key", "the key is strong enough", checkKey},
		{"Signature", "the signature algorithm is strong enough", checkSignature},
		{"Age", "the request is not too old", checkAge},
		{"Validity", "it asks for no longer validity than allowed", checkValidity},
		{"Inventory", "the inventory allows the node to join, now and when the request was created", checkInventory},
		{"NodeAbsent", "there is no such Node, or the inventory allows it to rejoin", checkNodeAbsent},
		{"Count", "fewer requests were approved for the node than the inventory allows", checkCount},
	},
	ServingFlow: {
		{"Undecided", "the request is not decided yet", checkUndecided},
		{"Requestor", "the node itself created it", checkNodeItself},
		{"Groups", "the requestor is in a node's groups and in no others", checkGroups},
		{"Usages", "the certificate is for servers only", checkUsages},
		{"Subject", "the subject is exactly that of a node", checkSubject},
		{"Contents", "it contains nothing but the subject, the key, DNS names and IP addresses", checkContents},
		{"Key", "the key is strong enough", checkKey},
		{"Signature", "the signature algorithm is strong enough", checkSignature},
		{"Age", "the request is not too old", checkAge},
		{"Validity", "it asks for no longer validity than allowed", checkValidity},
		{"NodeThere", "the Node exists", checkNodeThere},
		{"Names", "it requests at least one name or address", checkNames},
		{"PlainNames", "every name is that of one host, every address that of one interface", checkPlainNames},
		{"ProvenNames", "every name and address is in the inventory or in the kubelet's current certificate, or an egress IP at renewal", checkProvenNames},
	},
}
