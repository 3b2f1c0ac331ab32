// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// HTML is the input of a page.
type HTML struct {
	Title   string
	Reports []Report
	// Before are reports of the same clusters without the modules, to show next to the others.
	Before []Report
	// Caption and BeforeCaption describe the clusters.
	Caption, BeforeCaption string
}

const beforePrefix = "before/"

var (
	//go:embed page.html.tmpl
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// WriteHTML writes one self-contained page. The fragment SCENARIO/MODULE, such as #ha/ingress, opens a cell of the
// matrix, and before/SCENARIO/MODULE one of the Before side, also without scripts. Scenarios must be unique on each
// side, as [ReadFiles] ensures.
func WriteHTML(w io.Writer, h HTML) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, h.page()); err != nil {
		return fmt.Errorf("page %q: %w", h.Title, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

type page struct {
	Title string
	// Policy allows the browser to run the embedded script and to load nothing.
	Policy   string
	Style    template.CSS
	Script   template.JS
	Modules  []string
	Sides    []side
	Legend   []mark
	Measured []Report
}

type side struct {
	Name, Caption, About string
	Operators            operators
	Before               bool
	Tally                tally
	Rows                 []row
}

type row struct {
	Scenario, Description string
	// Missing is set if this side has no report of the scenario.
	Missing  bool
	Topology Topology
	Cells    []pageCell
}

type pageCell struct {
	cell
	// Anchor is the fragment that opens the cell, Other that of the same cell on the other side, if any.
	Anchor, Other string
}

func (h HTML) page() page {
	hash := sha256.Sum256([]byte(pageScript))
	p := page{
		Title:  h.Title,
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
		Style:  template.CSS(pageStyle), Script: template.JS(pageScript),
		Modules: modules(h.Reports, h.Before),
		Legend:  []mark{markPassed, markFailed, markInconclusive, markWaived, markNotApplicable},
	}
	for _, report := range h.Reports {
		if len(report.Measurements) > 0 {
			p.Measured = append(p.Measured, report)
		}
	}
	scenarios := h.scenarios()
	after := newSide(h.Reports, scenarios, p.Modules, "")
	after.Name, after.Caption = "Result", h.Caption
	if len(h.Before) == 0 {
		p.Sides = []side{after}
		return p
	}
	before := newSide(h.Before, scenarios, p.Modules, beforePrefix)
	before.Name, before.Caption, before.Before = "Before", h.BeforeCaption, true
	after.Name = "After"
	p.Sides = []side{before, after}
	link(p.Sides)
	return p
}

func (h HTML) scenarios() []Report {
	var heads []Report
	for _, report := range slices.Concat(h.Reports, h.Before) {
		same := func(other Report) bool { return other.Scenario == report.Scenario }
		if !slices.ContainsFunc(heads, same) {
			heads = append(heads, Report{Scenario: report.Scenario, Description: report.Description})
		}
	}
	return heads
}

func newSide(reports, scenarios []Report, modules []string, prefix string) side {
	s := side{About: about(reports), Operators: operatorsOf(reports)}
	for _, head := range scenarios {
		r := row{Scenario: head.Scenario, Description: head.Description}
		i := slices.IndexFunc(reports, func(report Report) bool { return report.Scenario == head.Scenario })
		if r.Missing = i < 0; !r.Missing {
			head, r.Topology = reports[i], reports[i].Topology
		}
		for _, c := range head.cells(modules) {
			s.Tally.add(c.Tally)
			r.Cells = append(r.Cells, pageCell{cell: c, Anchor: prefix + head.Scenario + "/" + c.Module})
		}
		s.Rows = append(s.Rows, r)
	}
	return s
}

func about(reports []Report) string {
	if len(reports) == 0 {
		return ""
	}
	started := slices.MinFunc(reports, func(a, b Report) int { return a.Started.Compare(b.Started) }).Started
	var parts, tools []string
	for _, report := range reports {
		if report.Tool != "" && !slices.Contains(tools, report.Tool) {
			tools = append(tools, report.Tool)
		}
	}
	if !started.IsZero() {
		parts = append(parts, started.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	return strings.Join(append(parts, tools...), " · ")
}

func link(sides []side) {
	for i := range sides[0].Rows {
		a, b := sides[0].Rows[i].Cells, sides[1].Rows[i].Cells
		for j := range a {
			if len(a[j].Results) > 0 && len(b[j].Results) > 0 {
				a[j].Other, b[j].Other = b[j].Anchor, a[j].Anchor
			}
		}
	}
}

func (p page) Pair() bool { return len(p.Sides) > 1 }

func (s side) Clean() bool {
	return s.Tally[markFailed]+s.Tally[markInconclusive] == 0 && s.Tally.Done() > 0
}

func (s side) Shares() []share {
	var shares []share
	for _, m := range []mark{markFailed, markInconclusive, markWaived, markPassed} {
		if n := s.Tally[m]; n > 0 {
			shares = append(shares, share{m, n})
		}
	}
	return shares
}

type share struct {
	mark
	Number int
}

func (s side) Others() []share {
	var shares []share
	for _, m := range []mark{markNotApplicable, markSkipped} {
		if n := s.Tally[m]; n > 0 {
			shares = append(shares, share{m, n})
		}
	}
	return shares
}

func (c pageCell) Mark() mark { m, _ := c.Tally.Worst(); return m }

// Number returns how many checks have the mark; with the number of checks that ran, if it differs.
func (c pageCell) Number() string {
	n := c.Tally[c.Mark()]
	if done := c.Tally.Done(); done > n {
		return fmt.Sprintf("%d/%d", n, done)
	}
	return fmt.Sprint(n)
}

func (c pageCell) Words() string { return c.Tally.sentence() }

func (c pageCell) Sorted() []pageResult {
	results := make([]pageResult, len(c.Results))
	for i, r := range c.Results {
		results[i] = pageResult{r}
	}
	slices.SortStableFunc(results, func(a, b pageResult) int { return cmp.Compare(a.Mark(), b.Mark()) })
	return results
}

// NeedsAttention reports whether the cell is printed on paper.
func (c pageCell) NeedsAttention() bool {
	return c.Tally[markFailed]+c.Tally[markInconclusive]+c.Tally[markWaived] > 0
}

type pageResult struct{ Result }

// maxShown is the number of held evidence lines that are not folded.
const maxShown = 6

const requirementsPage = "https://github.com/solonode/sno/blob/main/docs/requirements.md"

var numbered = regexp.MustCompile(`^(R-[A-Z]+-[0-9]+)(: .*)$`)

// RequirementLink splits the requirement into a linked number, if any, and the sentence.
func (r pageResult) RequirementLink() (link struct{ Number, Link, Sentence string }) {
	link.Sentence = r.Requirement
	if match := numbered.FindStringSubmatch(r.Requirement); match != nil {
		link.Number, link.Sentence = match[1], match[2]
		link.Link = requirementsPage + "#" + strings.ToLower(match[1])
	}
	return link
}

func (r pageResult) Mark() mark { return r.mark() }

func (r pageResult) HasDetails() bool {
	return len(r.Evidence)+len(r.Controls)+len(r.Figures) > 0 || r.Waiver != nil
}

func (r pageResult) Shown() []Evidence {
	shown, _ := r.split()
	return shown
}

func (r pageResult) Rest() []Evidence {
	_, rest := r.split()
	return rest
}

func (r pageResult) split() (shown, rest []Evidence) {
	held := slices.Clone(r.Evidence)
	held = slices.DeleteFunc(held, func(e Evidence) bool { return !e.Held })
	shown = slices.DeleteFunc(slices.Clone(r.Evidence), func(e Evidence) bool { return e.Held })
	if len(held) <= maxShown+1 { // folding one line saves no space
		return append(shown, held...), nil
	}
	return append(shown, held[:maxShown]...), held[maxShown:]
}

func (r pageResult) Detected() int {
	n := 0
	for _, c := range r.Controls {
		if c.Detected {
			n++
		}
	}
	return n
}

// Amount returns the value with its unit.
func (f Figure) Amount() string { return f.amount() }

func (r pageResult) Duration() string {
	return time.Duration(r.Seconds * float64(time.Second)).Round(10 * time.Millisecond).String()
}
