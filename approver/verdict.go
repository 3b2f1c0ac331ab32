package approver

import (
	"errors"
	"strings"
)

// Reasons of a verdict. They are stable; scripts may rely on them.
const (
	// ReasonProvenByInventory and ReasonProvenByCertificate approve: everything is right, and the second source is the inventory, or, for
	// at least one of the names, the certificate that the kubelet shows now.
	ReasonProvenByInventory   = "ProvenByInventory"
	ReasonProvenByCertificate = "ProvenByCertificate"

	// Requests that cannot be read, by the Err variables.
	ReasonTooLarge     = "TooLarge"
	ReasonNotPEM       = "NotPEM"
	ReasonPEMType      = "PEMType"
	ReasonPEMSurplus   = "PEMSurplus"
	ReasonMalformed    = "Malformed"
	ReasonKeyTooLarge  = "KeyTooLarge"
	ReasonBadSignature = "BadSignature"

	// Inputs about which nothing is decided.
	ReasonInputsIncomplete = "InputsIncomplete" // no request of Parse, or no time

	// Requests of both flows.
	ReasonOtherSigner          = "OtherSigner"          // not for this tool
	ReasonAlreadyDecided       = "AlreadyDecided"       // approved, denied, failed or signed
	ReasonRequestorWrong       = "RequestorWrong"       // not the bootstrapper, or not the node itself
	ReasonGroupsWrong          = "GroupsWrong"          // one missing, or one too many
	ReasonUsagesWrong          = "UsagesWrong"          // one missing, or one too many
	ReasonSubjectWrong         = "SubjectWrong"         // not exactly O=system:nodes, CN=system:node:NAME
	ReasonContentsWrong        = "ContentsWrong"        // an extension, an attribute or a kind of name that no kubelet sends
	ReasonKeyWeak              = "KeyWeak"              // RSA below 2048 bits, a small curve, another kind of key
	ReasonSignatureWeak        = "SignatureWeak"        // SHA-1
	ReasonRequestTooOld        = "RequestTooOld"        // older than the limit
	ReasonRequestFromTheFuture = "RequestFromTheFuture" // made after now
	ReasonNodesUnknown         = "NodesUnknown"         // the Nodes were not read

	// Client requests.
	ReasonNotInInventory        = "NotInInventory"        // the second source does not know the name
	ReasonNoWindow              = "NoWindow"              // it knows the name, but not that it may join
	ReasonWindowNotOpen         = "WindowNotOpen"         // not yet
	ReasonWindowClosed          = "WindowClosed"          // not any more
	ReasonRequestedBeforeWindow = "RequestedBeforeWindow" // the request is older than the window
	ReasonNodeExists            = "NodeExists"            // and the inventory does not say that it may rejoin
	ReasonApprovalsUnknown      = "ApprovalsUnknown"      // how many were approved was not read
	ReasonCountUsedUp           = "CountUsedUp"           // as many were approved as the inventory allows

	// Serving requests.
	ReasonNodeMissing    = "NodeMissing"    // the node that asks is not there
	ReasonNoNames        = "NoNames"        // neither a DNS name nor an IP address
	ReasonNamesNotPlain  = "NamesNotPlain"  // a wildcard, or something else that is no host's own name or address
	ReasonNamesNotProven = "NamesNotProven" // neither in the inventory nor in the certificate that the kubelet shows
)

// Finding is one check that was made.
type Finding struct {
	// Check is its name, CamelCase.
	Check string `json:"check"`
	// OK tells that it was content. Then Message says what it proves, and Reason is empty.
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	// Message is what is wrong or missing, for a person. It may name what the request names.
	Message string `json:"message"`
}

// Verdict is what there is to say about one request. The zero value approves nothing. It never denies: somebody else may know more.
type Verdict struct {
	// Approve tells that every check was content.
	Approve bool `json:"approve"`
	// Reason is that of the first finding that was not content, or one of the two that approve; Message says it for a person.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Flow and Node tell what was asked for, as far as it could be read.
	Flow Flow   `json:"flow,omitempty"`
	Node string `json:"node,omitempty"`
	// Findings are all checks of the flow, in order.
	Findings []Finding `json:"findings,omitempty"`
}

// Missing are the findings that were not content.
func (v Verdict) Missing() []Finding {
	var missing []Finding
	for _, f := range v.Findings {
		if !f.OK {
			missing = append(missing, f)
		}
	}
	return missing
}

// WantsCertificate tells that nothing is missing but a proof of the names, so that dialling the kubelet may help. Nobody else is
// dialled for.
func (v Verdict) WantsCertificate() bool {
	missing := v.Missing()
	return len(missing) == 1 && missing[0].Reason == ReasonNamesNotProven
}

// Unreadable is the verdict about a request that Parse returned an error for.
func Unreadable(err error) Verdict {
	reason := ReasonMalformed
	for _, known := range []struct {
		err    error
		reason string
	}{
		{ErrTooLarge, ReasonTooLarge}, {ErrNotPEM, ReasonNotPEM}, {ErrPEMType, ReasonPEMType}, {ErrPEMSurplus, ReasonPEMSurplus},
		{ErrMalformed, ReasonMalformed}, {ErrKeyTooLarge, ReasonKeyTooLarge}, {ErrBadSignature, ReasonBadSignature},
	} {
		if errors.Is(err, known.err) {
			reason = known.reason
			break
		}
	}
	return Verdict{Reason: reason, Message: sentence(err)}
}

// sentence is an error as a message.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
