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

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"mark": Result.mark, "requirement": requirementLink, "folded": folded, "amount": Figure.amount,
		"detected": func(controls []Control) int {
			return len(slices.DeleteFunc(slices.Clone(controls), func(c Control) bool { return !c.Detected }))
		},
		"duration": func(seconds float64) time.Duration {
			return time.Duration(seconds * float64(time.Second)).Round(10 * time.Millisecond)
		},
	}).Parse(pageText))
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
	Cells    []cell
}

type cell struct {
	Module  string
	Results []Result
	Tally   tally
	// Anchor is the fragment that opens the cell, Other that of the same cell on the other side, if any.
	Anchor, Other string
}

func (h HTML) page() page {
	hash := sha256.Sum256([]byte(pageScript))
	p := page{
		Title:  h.Title,
		Policy: "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'",
		Style:  template.CSS(pageStyle), Script: template.JS(pageScript),
		Modules: modules(slices.Concat(h.Reports, h.Before)...),
		Legend:  []mark{markPassed, markFailed, markInconclusive, markWaived, markNotApplicable},
	}
	p.Measured = slices.DeleteFunc(slices.Clone(h.Reports), func(r Report) bool { return len(r.Measurements) == 0 })
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
		for _, module := range modules {
			c := cell{Module: module, Anchor: prefix + head.Scenario + "/" + module}
			for _, result := range head.Results {
				if result.Module == module {
					c.Results = append(c.Results, result)
					c.Tally[result.mark()]++
					s.Tally[result.mark()]++
				}
			}
			r.Cells = append(r.Cells, c)
		}
		s.Rows = append(s.Rows, r)
	}
	return s
}

func modules(reports ...Report) []string {
	var names []string
	for _, report := range reports {
		for _, result := range report.Results {
			if !slices.Contains(names, result.Module) {
				names = append(names, result.Module)
			}
		}
	}
	return names
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
	return s.Tally[markFailed]+s.Tally[markInconclusive] == 0 && s.Tally.done() > 0
}

// Shares are of the checks that ran, Others of those that did not.
func (s side) Shares() []share {
	return s.Tally.shares(markFailed, markInconclusive, markWaived, markPassed)
}

func (s side) Others() []share { return s.Tally.shares(markNotApplicable, markSkipped) }

type share struct {
	mark
	Number int
}

func (t tally) shares(of ...mark) (shares []share) {
	for _, m := range of {
		if t[m] > 0 {
			shares = append(shares, share{m, t[m]})
		}
	}
	return shares
}

func (c cell) Mark() mark { return c.Tally.worst() }

// Number returns how many checks have the mark; with the number of checks that ran, if it differs.
func (c cell) Number() string {
	n := c.Tally[c.Mark()]
	if done := c.Tally.done(); done > n {
		return fmt.Sprintf("%d/%d", n, done)
	}
	return fmt.Sprint(n)
}

func (c cell) Words() string { return c.Tally.sentence() }

func (c cell) Sorted() []Result {
	return slices.SortedStableFunc(slices.Values(c.Results), func(a, b Result) int { return cmp.Compare(a.mark(), b.mark()) })
}

// NeedsAttention reports whether the cell is printed on paper.
func (c cell) NeedsAttention() bool {
	return c.Tally[markFailed]+c.Tally[markInconclusive]+c.Tally[markWaived] > 0
}

// maxShown is the number of held evidence lines that are not folded.
const maxShown = 6

const requirementsPage = "https://github.com/solonode/sno/blob/main/docs/requirements.md"

var numbered = regexp.MustCompile(`^(R-[A-Z]+-[0-9]+)(: .*)$`)

// requirementLink splits a requirement into a linked number, if any, and the sentence.
func requirementLink(requirement string) (link struct{ Number, Link, Sentence string }) {
	link.Sentence = requirement
	if match := numbered.FindStringSubmatch(requirement); match != nil {
		link.Number, link.Sentence = match[1], match[2]
		link.Link = requirementsPage + "#" + strings.ToLower(match[1])
	}
	return link
}

// folded returns all evidence that did not hold and some that held, and the rest.
func folded(evidence []Evidence) (lines struct{ Shown, Rest []Evidence }) {
	for _, e := range evidence {
		if e.Held {
			lines.Rest = append(lines.Rest, e)
		} else {
			lines.Shown = append(lines.Shown, e)
		}
	}
	n := len(lines.Rest)
	if n > maxShown+1 { // folding one line saves no space
		n = maxShown
	}
	lines.Shown, lines.Rest = append(lines.Shown, lines.Rest[:n]...), lines.Rest[n:]
	return lines
}
