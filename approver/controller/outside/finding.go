package outside

import (
	"strconv"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
)

// outcome is what became of a request.
type outcome string

const (
	approved     outcome = "approved"
	wouldApprove outcome = "would approve"
	// asking means that its kubelet has been called; a later look has the answer.
	asking  outcome = "asking"
	pending outcome = "pending"
)

// Reasons beside those of a verdict: why a request stays pending although it may be proven.
const (
	reasonContested          = "Contested"          // more are pending for the node than the inventory allows, so which is the node's cannot be told
	reasonLimitReached       = "LimitReached"       // as many were approved lately as may be
	reasonTooManyOfNode      = "TooManyOfNode"      // a node makes one request at a time; so many are not looked at
	reasonAskingKubelet      = "AskingKubelet"      // the kubelet has not answered yet
	reasonKubeletUnreachable = "KubeletUnreachable" // it does not answer
	reasonNoAuthority        = "NoAuthority"        // who signs for kubelets is not known
	reasonChanging           = "Changing"           // somebody else writes it all the time
)

// finding is what there is to say about one request. -o json prints it as it is.
type finding struct {
	Request     string    `json:"request"`
	RequestedBy string    `json:"requestedBy"`
	Created     time.Time `json:"created"`
	Outcome     outcome   `json:"outcome"`
	approver.Verdict
	// NotChecked are the checks that were not made, because what is missing already decides and they cost more than looking.
	NotChecked []string `json:"notChecked,omitempty"`
	uid        string
}

func newFinding(csr *certificatesv1.CertificateSigningRequest, what outcome, verdict approver.Verdict) finding {
	return finding{
		Request: csr.Name, RequestedBy: csr.Spec.Username, Created: csr.CreationTimestamp.UTC(), Outcome: what, Verdict: verdict, uid: string(csr.UID),
	}
}

// cheaply is what was found without reading anything but the request: what would have cost more was not checked.
func cheaply(csr *certificatesv1.CertificateSigningRequest, v approver.Verdict) finding {
	f := newFinding(csr, pending, v)
	f.Findings = nil
	for _, check := range v.Findings {
		if notRead(check.Reason) {
			f.NotChecked = append(f.NotChecked, check.Check)
			continue
		}
		f.Findings = append(f.Findings, check)
	}
	if missing := f.Missing(); len(missing) > 0 {
		f.Reason, f.Message = missing[0].Reason, missing[0].Message
	}
	return f
}

// notRead tells that a check is not content because a node was not read, its kubelet not called, or the approvals not counted yet.
func notRead(reason string) bool {
	switch reason {
	case approver.ReasonNodesUnknown, approver.ReasonApprovalsUnknown, approver.ReasonNamesNotProven:
		return true
	}
	return false
}

// keptBack is a verdict with one more finding, because of which it stays pending.
func keptBack(v approver.Verdict, check, reason, message string) approver.Verdict {
	v.Findings = append(v.Findings[:len(v.Findings):len(v.Findings)], approver.Finding{Check: check, Reason: reason, Message: message})
	v.Approve, v.Reason, v.Message = false, reason, message
	return v
}

// summary is how a look ended.
type summary struct {
	Approved     int `json:"approved"`
	WouldApprove int `json:"wouldApprove"`
	Pending      int `json:"pending"`
	// Reasons counts those that stay pending.
	Reasons map[string]int `json:"reasons,omitempty"`
	// Complete tells that every request was looked at.
	Complete bool `json:"complete"`
}

func (s *summary) none() bool { return s.Approved+s.WouldApprove+s.Pending == 0 }

func (s *summary) add(f finding) {
	switch f.Outcome {
	case approved:
		s.Approved++
	case wouldApprove:
		s.WouldApprove++
	case asking, pending:
		s.Pending++
		if s.Reasons == nil {
			s.Reasons = map[string]int{}
		}
		s.Reasons[f.Reason]++
	}
}

// longest is how much of a text that somebody else chose is shown on a screen.
const longest = 240

// plain shows a text that somebody else chose on a screen: nothing in it moves the cursor, and nothing that is not ASCII passes for
// something that is.
func plain(text string) string {
	var shown strings.Builder
	for _, r := range text {
		if r >= ' ' && r <= '~' {
			shown.WriteRune(r)
		} else {
			shown.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		if shown.Len() > longest {
			return shown.String() + "..."
		}
	}
	return shown.String()
}
