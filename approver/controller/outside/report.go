package outside

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// report shows what was found. Nothing but that goes to standard output.
type report interface {
	add(finding)
	// end closes one look.
	end(summary) error
}

// lines is -o json: one JSON object per line, a request each, and at the end of a look its summary.
type lines struct{ out *bufio.Writer }

func (l lines) add(f finding) { l.print(f) }

func (l lines) end(s summary) error {
	l.print(map[string]summary{"summary": s})
	return l.out.Flush()
}

func (l lines) print(what any) {
	encoder := json.NewEncoder(l.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(what) // an error stays in the writer, and end returns it
}

// maxRows is how many of the requests that stay pending a table names one by one. The rest of a flood is counted.
const maxRows = 100

// table is what a person reads: a line for every request, then what was checked and what is missing where one stays pending, and
// what to do about it.
type table struct {
	out *bufio.Writer
	now func() time.Time
	// inventory is the name of the file, for who has to change it.
	inventory string

	rows []finding
	left []finding
	more map[string]int
}

func (t *table) add(f finding) {
	switch {
	case f.Outcome == approved || f.Outcome == wouldApprove:
		t.rows = append(t.rows, f)
	case len(t.left) < maxRows:
		t.left = append(t.left, f)
	default:
		if t.more == nil {
			t.more = map[string]int{}
		}
		t.more[f.Reason]++
	}
}

func (t *table) end(s summary) error {
	t.requests()
	t.missing()
	t.sum(s)
	t.rows, t.left, t.more = nil, nil, nil
	return t.out.Flush()
}

// requests has the latest request last: that is where a person looks.
func (t *table) requests() {
	all := slices.Concat(t.rows, t.left)
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Request, b.Request))
	})
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REQUEST\tFOR\tNODE\tAGE\tOUTCOME\tWHY")
	for _, f := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			plain(f.Request), strings.ToLower(or(string(f.Flow), "?")), plain(or(f.Node, "?")), duration.HumanDuration(t.now().Sub(f.Created)), f.Outcome, plain(f.Message))
	}
	_ = w.Flush() // an error stays in the writer below, and end returns it
	for _, reason := range slices.Sorted(maps.Keys(t.more)) {
		fmt.Fprintf(t.out, "... and %d more that stay pending: %s\n", t.more[reason], reason)
	}
}

func (t *table) missing() {
	if len(t.left) == 0 {
		return
	}
	fmt.Fprintln(t.out, "\nWhat was checked, and what is missing:")
	for _, f := range t.left {
		fmt.Fprintf(t.out, "  %s\n", plain(f.Request))
		var fine []string
		for _, c := range f.Findings {
			if c.OK {
				fine = append(fine, c.Check)
			}
		}
		if len(f.Findings) == 0 {
			fmt.Fprintf(t.out, "    missing  %s\n", plain(f.Message))
			continue
		}
		fmt.Fprintf(t.out, "    checked  %s\n", or(strings.Join(fine, ", "), "nothing holds"))
		if len(f.NotChecked) > 0 {
			fmt.Fprintf(t.out, "    skipped  %s\n", strings.Join(f.NotChecked, ", "))
		}
		for _, c := range f.Missing() {
			fmt.Fprintf(t.out, "    missing  %s: %s\n", c.Check, plain(c.Message))
		}
	}
}

func (t *table) sum(s summary) {
	if s.none() {
		fmt.Fprintln(t.out, "No node waits for a certificate.")
		return
	}
	parts := []string{fmt.Sprintf("%d approved", s.Approved)}
	if s.WouldApprove > 0 {
		parts = []string{fmt.Sprintf("%d would be approved (dry run)", s.WouldApprove)}
	}
	if s.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d left pending", s.Pending))
	}
	fmt.Fprintf(t.out, "\n%s.\n", strings.Join(parts, ", "))
	if !s.Complete {
		fmt.Fprintln(t.out, "Not all requests were looked at.")
	}
	if s.Pending > 0 {
		fmt.Fprintf(t.out, "Put what you know to be right into %s, or approve by hand: oc adm certificate approve NAME\n", t.inventory)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// newReport is the report that -o asks for.
func newReport(format string, out io.Writer, inventory string, now func() time.Time) report {
	buffered := bufio.NewWriter(out)
	if format == formatJSON {
		return lines{buffered}
	}
	return &table{out: buffered, now: now, inventory: inventory}
}
