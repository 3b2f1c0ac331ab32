// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
)

// Files that are generated from the catalogue are committed, so that reviews show its changes.

type pageModule struct {
	Name   string
	Checks []catalogue.Check
}

// Count returns how many checks have a label.
func (m pageModule) Count(label string) int {
	n := 0
	for _, check := range m.Checks {
		if slices.Contains(check.Labels(), label) {
			n++
		}
	}
	return n
}

func TestConformancePage(t *testing.T) {
	page := template.New("page.md.tmpl").Funcs(template.FuncMap{
		"lower": strings.ToLower,
		"cell":  strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace,
		"where": func(check catalogue.Check) string {
			where := orAll(check.Topologies)
			if len(check.Needs) > 0 {
				where += "; needs " + strings.Join(check.Needs, ", ")
			}
			return where
		},
		"kinds": func(check catalogue.Check) string {
			var kinds []string
			for _, kind := range []catalogue.ControlKind{catalogue.KindState, catalogue.KindRecord, catalogue.KindCluster} {
				if slices.ContainsFunc(check.Controls, func(control catalogue.Control) bool { return check.KindOf(control) == kind }) {
					kinds = append(kinds, string(kind))
				}
			}
			return strings.Join(kinds, ", ")
		},
	})
	if _, err := page.ParseFiles(filepath.Join("testdata", "page.md.tmpl")); err != nil {
		t.Fatal(err)
	}
	var modules []pageModule
	for _, name := range catalogue.Modules(catalogue.All()) {
		modules = append(modules, pageModule{name, slices.DeleteFunc(catalogue.All(), func(check catalogue.Check) bool { return check.Module != name })})
	}
	var text bytes.Buffer
	if err := page.Execute(&text, modules); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("..", "..", "docs", "conformance.md"), text.Bytes())
}

// -update does not remove a test without a successor. To remove one, delete it from the file in the same change.
func TestTestsOfTheLastRelease(t *testing.T) {
	file := filepath.Join(".openshift-tests-extension", "sno_external_conformance.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var before []spec
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	now := specs(catalogue.All())
	if missing := missingTests(before, now); len(missing) > 0 {
		t.Fatalf("tests are missing: if a title has changed, add the old one to titles in list.go: %q", missing)
	}
	var data bytes.Buffer
	if err := encodeOne(&data, now); err != nil {
		t.Fatal(err)
	}
	golden(t, file, data.Bytes())
}

// missingTests returns the old tests that are neither in the catalogue nor the original name of another test.
func missingTests(before, now []spec) []string {
	known := map[string]bool{}
	for _, s := range now {
		known[s.Name] = true
		known[s.OriginalName] = true
	}
	var missing []string
	for _, s := range before {
		if !known[s.Name] && (s.OriginalName == "" || !known[s.OriginalName]) {
			missing = append(missing, s.Name)
		}
	}
	return missing
}

func TestRenamedTest(t *testing.T) {
	const title = "The router has a pod"
	older := someChecks()
	older[0].Title = title
	before := specs(older)
	if diff := cmp.Diff([]string{before[0].Name}, missingTests(before, specs(someChecks()))); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	titles["SNO-ING-001"] = title
	t.Cleanup(func() { delete(titles, "SNO-ING-001") })
	renamed := specs(someChecks())
	for _, released := range [][]spec{before, renamed} {
		if missing := missingTests(released, renamed); len(missing) > 0 || renamed[0].OriginalName != before[0].Name {
			t.Errorf("missing: %q, the original name is %q", missing, renamed[0].OriginalName)
		}
	}
}
