// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunAll(t *testing.T) {
	step := func(name string, err error) Step {
		return Step{name, "about " + name, false, func(context.Context, repo) error { return err }}
	}
	var out bytes.Buffer
	err := runAll(t.Context(), repo{}, []Step{step("one", findings{"a.go:1: bad", "a.go:2: bad"}), step("two", nil), step("three", errors.New("broken"))}, &out)
	if err == nil || err.Error() != "2 of 3 steps failed" {
		t.Errorf("got %v", err)
	}
	got := regexp.MustCompile(`\d+\.\d s`).ReplaceAllString(out.String(), "0.0 s")
	want := `[1/3] one: about one
    a.go:1: bad
    a.go:2: bad
[2/3] two: about two
[3/3] three: about three
    broken

one              FAILED    0.0 s
two              ok        0.0 s
three            FAILED    0.0 s
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// small is a repository of two modules in which the steps that need no tool pass.
func small() map[string]string {
	return map[string]string{
		"go.work": "go 1.26.0\n\nuse (\n\t./topology\n\t./patch\n)\n",
		"hack/versions.yaml": "go: {set: 1.25.0, newest: 1.26.0}\ngoverned: []\npins: []\nunpinned: []\n" +
			"release: {version: v0.1.0, libraries: [topology, patch], programs: []}\n",
		"docs/vendoring.md":       "go get github.com/solonode/sno/patch@v0.1.0\n",
		"topology/go.mod":         "module github.com/solonode/sno/topology\n\ngo 1.25.0\n",
		"topology/topology.go":    "package topology\n\nconst Replicas = 1\n",
		"patch/go.mod":            "module github.com/solonode/sno/patch\n\ngo 1.25.0\n\nrequire github.com/solonode/sno/topology v0.1.0\n\nreplace github.com/solonode/sno/topology => ../topology\n",
		"patch/patch.go":          "package patch\n\nimport \"github.com/solonode/sno/topology\"\n\nconst Replicas = topology.Replicas\n",
		"patch/patch_test.go":     "package patch\n",
		"patch/mutants.yaml":      "- {name: two, file: patch.go, replace: topology.Replicas, with: '2', package: ., test: TestReplicas, why: w}\n",
		"tools/lint/go.mod":       "module example.com/lint\n",
		"topology/testdata/a.txt": "text\n",
	}
}

// TestSteps makes one change at a time and requires exactly the named steps to fail.
func TestSteps(t *testing.T) {
	for name, test := range map[string]struct{ file, old, new, step, want string }{
		"nothing wrong":       {},
		"path of a machine":   {"topology/testdata/a.txt", "text", "see /" + "tmp/a", "paths", "topology/testdata/a.txt:1:see "},
		"host of a registry":  {"topology/topology.go", "const", "// at proxy." + "golang.org\nconst", "paths", "topology/topology.go:3:"},
		"mutant is gone":      {"patch/patch.go", "const Replicas", "const Replicas, None = 1, topology.Replicas + topology.Replicas //", "mutants", "patch/mutants.yaml: two: does not apply"},
		"outside of go.work":  {"go.work", "\t./patch\n", "", "versions", "patch/go.mod: go.work does not have this module"},
		"version in document": {"docs/vendoring.md", "v0.1.0", "v0.2.0", "versions", "docs/vendoring.md: a command has another version"},
		"unused requirement":  {"topology/go.mod", "go 1.25.0\n", "go 1.25.0\n\nrequire github.com/solonode/sno/patch v0.1.0\n\nreplace github.com/solonode/sno/patch => ../patch\n", "tidy", "-require github.com/solonode/sno/patch"},
	} {
		t.Run(name, func(t *testing.T) {
			files := small()
			files[test.file] = strings.Replace(files[test.file], test.old, test.new, 1)
			delete(files, "")
			r := repository(t, files)
			for _, step := range Steps() {
				switch step.Name {
				case "versions", "paths", "mutants", "tidy":
				default:
					continue
				}
				err := step.run(t.Context(), r)
				if fails := step.Name == test.step; fails != (err != nil) || fails && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v; step %s must fail with %q", step.Name, err, test.step, test.want)
				}
			}
		})
	}
}

// A stand-in for the generator, which tools/run starts.
func TestGenerated(t *testing.T) {
	files := small()
	files["patch/cmd/patch-controller/main.go"] = "package main\n\nfunc main() {}\n"
	files["tools/run"] = "#!/bin/sh\nfor last; do :; done\necho 'rules: [{apiGroups: [\"\", apps], resources: [pods/eviction], resourceNames: [a], verbs: [get, create]}]' >\"${last#output:rbac:dir=}/role.yaml\"\n"
	files["approver/config/approve/role.yaml"] = "rules: [{nonResourceURLs: [/metrics], verbs: [get]}]\n"
	files["approver/config/off/role.yaml"] = files["approver/config/approve/role.yaml"]
	files["fleet/config/executor/rights.yaml"] = files["approver/config/approve/role.yaml"]
	files[allRoleFile] = "metadata: {namespace: here}\n"
	files["patch/"+roleFile] = "old\n"
	r := repository(t, files)
	if _, err := Generate(t.Context(), r.Workspace, "patch"); err != nil {
		t.Fatal(err)
	}
	if err := checkGenerated(t.Context(), r); err != nil {
		t.Errorf("right after generating: %v", err)
	}
	for _, name := range []string{"patch/" + roleFile, rightsFile} {
		text, err := os.ReadFile(r.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.Path(name), []byte("rules: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkGenerated(t.Context(), r); err == nil || !strings.Contains(err.Error(), name+": is not what is generated") {
			t.Errorf("%s is stale: got %v", name, err)
		}
		if err := os.WriteFile(r.Path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		const rows = "| cluster | `pods/eviction`<br>`pods.apps/eviction` | `a` | get | create |\n\n## approver-controller --mode=off, in addition\n\n" +
			"| where | what | named | reads | writes |\n|---|---|---|---|---|\n| cluster | `/metrics` |  | get |  |\n"
		if name == rightsFile && !strings.Contains(string(text), rows) {
			t.Errorf("the page lacks %s:\n%s", rows, text)
		}
	}
}
