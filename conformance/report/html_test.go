// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func samplePage() HTML {
	return HTML{
		Title: "Single-node conformance", Reports: sampleReports(), Caption: "with the modules of this repository",
		Before: sampleReports(), BeforeCaption: "operators as they are today",
	}
}

func render(t *testing.T, h HTML) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHTMLInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser; make proof runs it")
	}
	pair := render(t, samplePage())
	if *samplePageFile != "" {
		if err := os.WriteFile(*samplePageFile, pair, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := samplePage()
	one.Before = nil
	single := render(t, one)
	cells := len(sampleScenarios) * len(sampleModules)
	for _, test := range []struct {
		name     string
		page     []byte
		fragment string
		width    int
		press    string
		cells    int
		open     string
		current  string
	}{
		{name: "a cell of before", page: pair, fragment: "before/ha/ingress", width: 1280, cells: 2 * cells, open: "before/ha/ingress", current: "before/ha/ingress"},
		{name: "keys", page: single, fragment: "none-sno/topology", width: 700, cells: cells, open: "none-sno/topology", current: "none-sno/topology", press: `
			const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
			document.querySelector("a.cell").focus();
			for (const key of ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft"]) press(key);
			facts.focus = document.activeElement.dataset.opens;
			press("Escape");
			facts.escaped = location.hash + " " + document.activeElement.dataset.opens;`},
		{name: "nothing open", page: pair, width: 1280, cells: 2 * cells},
		{name: "a cell", page: pair, fragment: "ha/ingress", width: 700, cells: 2 * cells, open: "ha/ingress", current: "ha/ingress"},
		{name: "one matrix", page: single, fragment: "two-node/auth", width: 1280, cells: cells, open: "two-node/auth", current: "two-node/auth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := browse(t, test.page, test.fragment, test.width, test.press)
			want := map[string]string{
				"errors": "", "cells": strconv.Itoa(test.cells), "open": test.open, "current": test.current, "wide": "0", "clipped": "0",
			}
			if test.press != "" {
				want["focus"], want["escaped"] = "none-sno-day1-worker/topology", "#matrix none-sno/topology"
			}
			lines, err := strconv.Atoi(got["lines"])
			if err != nil || (lines > 0) != (test.open != "") {
				t.Errorf("%q lines of evidence are visible, and open is %q", got["lines"], test.open)
			}
			delete(got, "lines")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("visible content (-want +got):\n%s", diff)
			}
		})
	}
}

// The page's policy must allow its script and nothing else.
func TestHTMLPolicy(t *testing.T) {
	page := string(render(t, HTML{Title: "small", Reports: []Report{smallReport()}, Before: []Report{smallReport()}}))
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1)
	if len(script) != 1 {
		t.Fatalf("%d scripts, want 1", len(script))
	}
	hash := sha256.Sum256([]byte(script[0][1]))
	policy := html.UnescapeString(regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(page)[1])
	want := "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	withoutLinks := strings.ReplaceAll(page, `<a href="`+requirementsPage, "") // links load nothing
	if found := regexp.MustCompile(`(?i)https?://|<link|<img|@import|url\(`).FindString(withoutLinks); found != "" {
		t.Errorf("the page loads %q", found)
	}
}

func TestHTMLEscapes(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'` + "`"
	report := smallReport()
	report.Scenario, report.Description, report.Tool = hostile, hostile, hostile
	report.Operators = []Operator{{Module: hostile, Command: hostile}, {Module: hostile + "2", Command: hostile, StandIn: true}}
	report.Topology.Observed.ControlPlane, report.Topology.Expected.ControlPlane = hostile, hostile+"2"
	for i := range report.Results {
		r := &report.Results[i]
		r.ID, r.Title, r.Module, r.Level, r.Tier, r.Requirement, r.Reason = hostile, hostile, hostile, hostile, hostile, hostile, hostile
		for j := range r.Evidence {
			r.Evidence[j] = Evidence{Object: hostile, Field: hostile, Want: hostile, Got: hostile}
		}
		for j := range r.Controls {
			r.Controls[j].Name, r.Controls[j].Got = hostile, hostile
		}
		for j := range r.Figures {
			r.Figures[j].Name, r.Figures[j].Unit = hostile, hostile
		}
		if r.Waiver != nil {
			r.Waiver.Why, r.Waiver.Expires = hostile, hostile
		}
	}
	page := render(t, HTML{Title: hostile, Reports: []Report{report}, Caption: hostile, Before: []Report{report}, BeforeCaption: hostile})
	if n := bytes.Count(page, []byte("<script>")); n != 1 {
		t.Errorf("%d scripts, want 1", n)
	}
	if bytes.Contains(page, []byte("<img")) || bytes.Contains(page, []byte(`""><`)) {
		t.Error("a text of the report became markup")
	}
	if t.Failed() {
		return // an alert would block the browser
	}
	got := browse(t, page, hostile+"/"+hostile, 1280, "")
	if got["errors"] != "" || got["open"] != hostile+"/"+hostile || got["cells"] != "2" {
		t.Errorf("the page is incomplete: %q", got)
	}
}

// A page links requirements, and shows measurements out of bounds.
func TestHTMLContent(t *testing.T) {
	requiring := func(text string) Report {
		report := smallReport()
		for i := range report.Results {
			report.Results[i].Requirement = text
		}
		return report
	}
	measured := Report{Scenario: "none-sno", Measurements: []Measurement{
		{What: "rollout", Measured: "outage 1.00 s", Bound: "max 2.00 s", Compared: "stock <2.00 s>", Held: true},
		{What: "restart", Measured: "outage 9.00 s", Bound: "max 5.00 s", Compared: "-"},
	}}
	for name, test := range map[string]struct {
		report Report
		want   []string
	}{
		"a requirement": {requiring("R-EXAMPLE-5: the router is pinned"), []string{
			`<a href="https://github.com/solonode/sno/blob/main/docs/requirements.md#r-example-5">R-EXAMPLE-5</a>: the router is pinned</p>`,
		}},
		"one of an older report":       {requiring("of an older report"), []string{`<p class="requirement">of an older report</p>`}},
		"evidence that held is folded": {sampleReports()[0], []string{"<summary>9 more that held</summary>"}},
		"measurements": {measured, []string{
			"Measured on none-sno", "<tr><td>✔<td>rollout<td>outage 1.00 s<td>max 2.00 s<td>stock &lt;2.00 s&gt;", `<tr class="no"><td>✘<td>restart`,
		}},
	} {
		page := render(t, HTML{Title: "One", Reports: []Report{test.report}})
		for _, want := range test.want {
			if !bytes.Contains(page, []byte(want)) {
				t.Errorf("%s: the page does not contain %s", name, want)
			}
		}
	}
}
