package approver

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver/inventory"
)

// DefaultMaxAge is how old a request may be. The stock approver lets a node ask for two hours after its Machine was made.
const DefaultMaxAge = 2 * time.Hour

// ClockSkew is how far the API server's clock may be ahead of ours.
const ClockSkew = 5 * time.Minute

// Policy is what a person may choose. The zero value is the strictest that OpenShift works with.
type Policy struct {
	// MaxAge is how old a request may be; 0 is DefaultMaxAge.
	MaxAge time.Duration
	// BootstrapTokens also lets kubeadm's bootstrap tokens ask for client certificates (user system:bootstrap:ID and kubeadm's
	// groups), beside OpenShift's node-bootstrapper.
	BootstrapTokens bool
}

// Inputs are what a decision needs. They are only read.
type Inputs struct {
	// Request is what Parse returned.
	Request Request
	// Nodes are the names of all Nodes; nil while they were not read, not nil and empty when there are none.
	Nodes sets.Set[string]
	// Inventory is the second source; nil where there is none.
	Inventory *inventory.Inventory
	// Shown is what the node's kubelet shows now; nil where nobody dialled it or it did not answer.
	Shown *Shown
	// Egress are the egress IPs of the node; the zero value is none. They prove nothing without Shown.
	Egress Egress
	// Approvals are how many client requests the cluster has that were approved already, by the name of their node (ApprovedFor reports
	// which count); nil while they were not read, not nil and empty when there are none.
	Approvals map[string]int
	// Now is the time. The zero time decides nothing.
	Now time.Time
	// Policy is what a person chose.
	Policy Policy
}

// Shown is what a kubelet showed in a TLS handshake at its own address.
type Shown struct {
	// Chain is what it sent, its own certificate first.
	Chain []*x509.Certificate
	// Roots are the authorities that sign kubelets' serving certificates in this cluster.
	Roots *x509.CertPool
}

// ErrIncomplete is returned for Inputs that lack what every decision needs.
var ErrIncomplete = errors.New("the inputs of the decision are incomplete")

// Validate returns ErrIncomplete, with what is missing, for Inputs without a Request of Parse, or without the time. What else may be
// left out leaves a request without its proof, and has a reason of its own.
func (in Inputs) Validate() error {
	switch {
	case !in.Request.parsed || in.Request.X509 == nil:
		return fmt.Errorf("%w: Request was not made by Parse, which verifies its signature", ErrIncomplete)
	case in.Now.IsZero():
		return fmt.Errorf("%w: Now is not set", ErrIncomplete)
	}
	return nil
}

// Decide is the whole decision: a request is approved when all Checks of its flow are content, so that two sources
// confirm it (R-APP-2), and left alone otherwise. Incomplete inputs approve nothing: the reason is
// ReasonInputsIncomplete, and Validate has the error. It is pure.
func Decide(in Inputs) Verdict {
	return decide(in, Checks(in.Request.Flow()))
}

func decide(in Inputs, checks []Check) Verdict {
	v := Verdict{Flow: in.Request.Flow(), Node: in.Request.Node()}
	if err := in.Validate(); err != nil {
		v.Reason, v.Message = ReasonInputsIncomplete, sentence(err)
		return v
	}
	if len(checks) == 0 {
		v.Reason, v.Message = ReasonOtherSigner, "The request is for another signer; it is not looked at"
		return v
	}
	v.Approve, v.Reason, v.Message = true, in.source(), "Everything was proven"
	v.Findings = make([]Finding, len(checks))
	for i, check := range checks {
		v.Findings[i] = Finding{Check: check.Name, OK: true, Message: check.Proves}
		if f := check.fault(&in); f != nil {
			v.Findings[i] = Finding{Check: check.Name, Reason: f.reason, Message: f.message}
			if v.Approve {
				v.Approve, v.Reason, v.Message = false, f.reason, f.message
			}
		}
	}
	return v
}

// Check is one thing that must be true of a request.
type Check struct {
	// Name is what a reader of a verdict sees, CamelCase.
	Name string
	// Proves says what is known when the check is content.
	Proves string
	// fault says what is wrong; nil when nothing is. No check relies on another one having been made.
	fault func(*Inputs) *fault
}

// fault is why a check was not content.
type fault struct{ reason, message string }

// Checks are the checks of a flow, in the order of their reasons; none for OtherFlow. Each is needed: without it something would
// be approved that must not be.
func Checks(flow Flow) []Check {
	switch flow {
	case ClientFlow:
		return clientChecks
	case ServingFlow:
		return servingChecks
	case OtherFlow:
	}
	return nil
}

// The first source of a client request is the bootstrapper's secret, which every pod of every node may have seen; the second one is
// the inventory. So all that such a request can get is the certificate of a node that the inventory awaits now and that is not there
// yet (R-APP-4).
var clientChecks = []Check{
	{"Undecided", "nobody decided on the request yet", checkUndecided},
	{"Requestor", "the bootstrapper made it", checkBootstrapper},
	{"Groups", "the requestor is in the bootstrapper's groups and in no others", checkBootstrapperGroups},
	{"Usages", "the certificate can be used to be a client, and for nothing else", checkClientUsages},
	{"Subject", "the subject is exactly that of a node", checkSubject},
	{"Contents", "nothing is signed beside the subject and the key", checkClientContents},
	{"Key", "the key is strong enough", checkKey},
	{"Signature", "the request is signed in a way that cannot be forged", checkSignature},
	{"Age", "the request is young", checkAge},
	{"Inventory", "the inventory says that the node may join now, and it asked since then", checkInventory},
	{"NodeAbsent", "there is no such Node, or the inventory says that it may join again", checkNodeAbsent},
	{"Count", "fewer were approved for the node than the inventory allows", checkCount},
}

// The first source of a serving request is the node's own client certificate; the second one, for each name by which it wants to
// serve, is the inventory, or the certificate that its kubelet serves with now. So a node that was broken into can become no other.
var servingChecks = []Check{
	{"Undecided", "nobody decided on the request yet", checkUndecided},
	{"Requestor", "the node itself made it", checkItself},
	{"Groups", "the requestor is in a node's groups and in no others", checkNodeGroups},
	{"Usages", "the certificate can be used to be a server, and for nothing else", checkServingUsages},
	{"Subject", "the subject is exactly that of a node", checkSubject},
	{"Contents", "nothing is signed beside the subject, the key, and DNS names and IP addresses", checkServingContents},
	{"Key", "the key is strong enough", checkKey},
	{"Signature", "the request is signed in a way that cannot be forged", checkSignature},
	{"Age", "the request is young", checkAge},
	{"NodeThere", "the Node is there", checkNodeThere},
	{"Names", "it asks for a name or an address", checkNames},
	{"PlainNames", "every name is that of one host, every address that of one interface", checkPlainNames},
	{"ProvenNames", "every name and address is in the inventory, or in the certificate that the kubelet serves with now, or an egress IP of the node that renews it", checkProvenNames},
}
