// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/solonode/sno/approver/requests"
)

type outcome string

const (
	approved     outcome = "approved"
	wouldApprove outcome = "would approve"
	asking       outcome = "asking" // the kubelet was called and has not answered yet
	pending      outcome = "pending"
)

// Reasons for pending requests in addition to those of a verdict. docs/approver.md explains them.
const (
	reasonLimitReached       = "LimitReached"
	reasonAskingKubelet      = "AskingKubelet"
	reasonKubeletUnreachable = "KubeletUnreachable"
	reasonNoAuthority        = "NoAuthority"
	reasonChanging           = "Changing"
)

// finding is the report on one request, as -o json prints it.
type finding struct {
	Request     string    `json:"request"`
	RequestedBy string    `json:"requestedBy"`
	Created     time.Time `json:"created"`
	Outcome     outcome   `json:"outcome"`
	requests.Verdict
	NotChecked []string `json:"notChecked,omitempty"` // they need further reads, and another check failed
	uid        types.UID
}

func newFinding(csr *certificatesv1.CertificateSigningRequest, o outcome, v requests.Verdict) finding {
	return finding{Request: csr.Name, RequestedBy: csr.Spec.Username, Created: csr.CreationTimestamp.UTC(), Outcome: o, Verdict: v, uid: csr.UID}
}

func failed(findings []requests.Finding) []requests.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f requests.Finding) bool { return f.OK })
}

func withoutReads(csr *certificatesv1.CertificateSigningRequest, v requests.Verdict) finding {
	f := newFinding(csr, pending, v)
	for _, check := range v.Findings {
		if needsReads(check) {
			f.NotChecked = append(f.NotChecked, check.Check)
		}
	}
	f.Findings = slices.DeleteFunc(slices.Clone(v.Findings), needsReads)
	if missing := failed(f.Findings); len(missing) > 0 {
		f.Reason, f.Message = missing[0].Reason, missing[0].Message
	}
	return f
}

// needsReads reports whether a check failed only because the node, its kubelet or the approved requests were not read
// yet.
func needsReads(f requests.Finding) bool {
	return f.Reason == requests.ReasonNodesUnknown || f.Reason == requests.ReasonApprovalsUnknown || f.Reason == requests.ReasonNamesNotProven
}

type summary struct {
	Approved     int            `json:"approved"`
	WouldApprove int            `json:"wouldApprove"`
	Pending      int            `json:"pending"`
	Reasons      map[string]int `json:"reasons,omitempty"` // of the pending ones
	Complete     bool           `json:"complete"`          // the pass did not end early
}

func (s *summary) empty() bool { return s.Approved+s.WouldApprove+s.Pending == 0 }

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

const maxPlain = 240

// plain returns at most 240 characters of ASCII: text of a request must not move the cursor or resemble other text.
func plain(text string) string {
	text = strconv.QuoteToASCII(text)
	text = strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
	if len(text) > maxPlain {
		return text[:maxPlain] + "..."
	}
	return text
}

type report interface {
	add(finding)
	end(summary) error
}

func newReport(format string, out io.Writer, inventory string, now func() time.Time) report {
	buffered := bufio.NewWriter(out)
	if format == formatTable {
		return &tableReport{out: buffered, now: now, inventory: inventory}
	}
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	return jsonReport{buffered, encoder}
}

// jsonReport prints one JSON object per line. The writer keeps an error until end returns it.
type jsonReport struct {
	out     *bufio.Writer
	encoder *json.Encoder
}

func (r jsonReport) add(f finding) { _ = r.encoder.Encode(f) }

func (r jsonReport) end(s summary) error {
	_ = r.encoder.Encode(map[string]summary{"summary": s})
	return r.out.Flush()
}

const maxRows = 100 // of pending requests in a table; others are counted

type tableReport struct {
	out       *bufio.Writer
	now       func() time.Time
	inventory string // the name of the file

	approved, pending []finding
	added             summary
}

func (r *tableReport) add(f finding) {
	r.added.add(f)
	if f.Outcome == approved || f.Outcome == wouldApprove {
		r.approved = append(r.approved, f)
	} else if len(r.pending) < maxRows {
		r.pending = append(r.pending, f)
	}
}

func (r *tableReport) end(s summary) error {
	r.printTable()
	r.printChecks()
	r.printSummary(s)
	r.approved, r.pending, r.added = nil, nil, summary{}
	return r.out.Flush()
}

// printTable sorts by age, the latest request last.
func (r *tableReport) printTable() {
	all := slices.Concat(r.approved, r.pending)
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Request, b.Request))
	})
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REQUEST\tFOR\tNODE\tAGE\tOUTCOME\tWHY")
	for _, f := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			plain(f.Request), strings.ToLower(cmp.Or(string(f.Flow), "?")), plain(cmp.Or(f.Node, "?")),
			duration.HumanDuration(r.now().Sub(f.Created)), f.Outcome, plain(f.Message))
	}
	_ = w.Flush() // the writer below keeps an error, and end returns it
	more := r.added.Reasons
	for _, f := range r.pending {
		more[f.Reason]--
	}
	for _, reason := range slices.Sorted(maps.Keys(more)) {
		if more[reason] > 0 {
			fmt.Fprintf(r.out, "... and %d more pending: %s\n", more[reason], reason)
		}
	}
}

func (r *tableReport) printChecks() {
	if len(r.pending) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nChecks of the pending requests:")
	for _, f := range r.pending {
		fmt.Fprintf(r.out, "  %s\n", plain(f.Request))
		if len(f.Findings) == 0 {
			fmt.Fprintf(r.out, "    failed   %s\n", plain(f.Message))
			continue
		}
		var passed []string
		for _, c := range f.Findings {
			if c.OK {
				passed = append(passed, c.Check)
			}
		}
		fmt.Fprintf(r.out, "    passed   %s\n", cmp.Or(strings.Join(passed, ", "), "none"))
		if len(f.NotChecked) > 0 {
			fmt.Fprintf(r.out, "    skipped  %s\n", strings.Join(f.NotChecked, ", "))
		}
		for _, c := range failed(f.Findings) {
			fmt.Fprintf(r.out, "    failed   %s: %s\n", c.Check, plain(c.Message))
		}
	}
}

func (r *tableReport) printSummary(s summary) {
	if s.empty() {
		fmt.Fprintln(r.out, "No request of a node is pending.")
		return
	}
	text := fmt.Sprintf("%d approved", s.Approved)
	if s.WouldApprove > 0 {
		text = fmt.Sprintf("%d would be approved (dry run)", s.WouldApprove)
	}
	if s.Pending > 0 {
		text += fmt.Sprintf(", %d left pending", s.Pending)
	}
	fmt.Fprintf(r.out, "\n%s.\n", text)
	if !s.Complete {
		fmt.Fprintln(r.out, "Not all requests were checked.")
	}
	if s.Pending > 0 {
		fmt.Fprintf(r.out, "Add the nodes that you know to %s, or approve by hand: oc adm certificate approve NAME\n", r.inventory)
	}
}

// changes reports findings that differ from the previous pass.
type changes struct {
	report
	last, now map[types.UID][2]string // outcome and reason
	changed   bool
}

func (c *changes) add(f finding) {
	c.now[f.uid] = [2]string{string(f.Outcome), f.Reason}
	if last, seen := c.last[f.uid]; !seen || last != c.now[f.uid] {
		c.changed = true
		c.report.add(f)
	}
}

func (c *changes) end(s summary) error {
	changed := c.changed
	c.last, c.now, c.changed = c.now, map[types.UID][2]string{}, false
	if !changed {
		return nil
	}
	return c.report.end(s)
}
