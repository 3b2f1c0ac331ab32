// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// sample is a repository without dependencies in which every step that needs no tool passes.
func sample() map[string]string {
	return map[string]string{
		"go.work": "go 1.26.0\n\nuse (\n\t./topology\n\t./patch\n)\n",
		"hack/versions.yaml": `go: {floor: 1.25.0, newest: 1.26.0}
legs: {floor: [topology, patch], newest: []}
governed: [k8s.io/]
pins: []
unpinned: []
release: {version: v0.1.0, libraries: [topology, patch], programs: []}
`,
		"hack/glossary.yaml": "since: " + strings.Repeat("a", 40) + `
terms:
- {term: fob, patterns: [fob off], write: refuse, finds: [fob off], accepts: [fobs off]}
`,
		"topology/go.mod":           "module github.com/solonode/sno/topology\n\ngo 1.25.0\n",
		"topology/topology.go":      license + "\n\n// Package topology is small.\npackage topology\n\n// Replicas is one.\nconst Replicas = 1\n",
		"topology/topology_test.go": license + "\n\npackage topology\n\nimport \"testing\"\n\nfunc TestReplicas(t *testing.T) {\n\tif Replicas != 1 {\n\t\tt.Error(Replicas)\n\t}\n}\n",
		"topology/mutants.yaml":     "- {name: two, file: topology.go, replace: Replicas = 1, with: Replicas = 2, package: ., test: TestReplicas, why: w}\n",
		"patch/go.mod":              "module github.com/solonode/sno/patch\n\ngo 1.25.0\n\nrequire github.com/solonode/sno/topology v0.1.0\n\nreplace github.com/solonode/sno/topology => ../topology\n",
		"patch/patch.go":            license + "\n\n// Package patch is small.\npackage patch\n\nimport \"github.com/solonode/sno/topology\"\n\n// Replicas is one.\nconst Replicas = topology.Replicas\n",
		"patch/patch_test.go":       license + "\n\npackage patch\n\nimport \"testing\"\n\nfunc TestReplicas(t *testing.T) {\n\tif Replicas != 1 {\n\t\tt.Error(Replicas)\n\t}\n}\n",
		"patch/mutants.yaml":        "- {name: two, file: patch.go, replace: topology.Replicas, with: topology.Replicas + 1, package: ., test: TestReplicas, why: w}\n",
	}
}

func repository(t *testing.T, files map[string]string) *workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "init", "--quiet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// TestSteps makes one change at a time and requires exactly the named steps to fail.
func TestSteps(t *testing.T) {
	all := []string{"versions", "words", "format", "mutants", "tidy", "boundaries", "workspace", "standalone"}
	tests := map[string]struct {
		file, old, new string
		want           map[string]string
	}{
		"nothing wrong": {},
		"not formatted": {"patch/patch.go", "const Replicas = topology", "const  Replicas = topology", map[string]string{"format": "patch/patch.go: run gofmt"}},
		"does not vet": {"patch/patch_test.go", "t.Error(Replicas)", "t.Errorf(\"%s\", Replicas)", map[string]string{
			"standalone": "wrong type",
		}},
		"term of the glossary": {"patch/patch.go", "patch is small", "patch does not fob\n// off", map[string]string{
			"words": "patch/patch.go:3: \"fob off\": write refuse\n1 in all: fob 1",
		}},
		"example without an occurrence": {"hack/glossary.yaml", "finds: [fob off]", "finds: [of]", map[string]string{
			"words": "hack/glossary.yaml: term \"fob\": does not find \"of\"",
		}},
		"no license":        {"patch/patch.go", license, "// Licensed", map[string]string{"words": "patch/patch.go: the first line must be"}},
		"mutant is gone":    {"patch/mutants.yaml", "topology.Replicas,", "topology.Gone,", map[string]string{"mutants": "patch/mutants.yaml: two: does not apply"}},
		"no sibling line":   {"patch/go.mod", "replace github.com/solonode/sno/topology => ../topology", "", map[string]string{"versions": "needs `replace", "tidy": "patch", "boundaries": "patch", "standalone": "patch"}},
		"go directive":      {"topology/go.mod", "go 1.25.0", "go 1.25.1", map[string]string{"versions": "topology/go.mod: the go directive", "tidy": "patch", "boundaries": "patch", "standalone": "patch"}},
		"unused dependency": {"patch/patch.go", "import \"github.com/solonode/sno/topology\"\n\n// Replicas is one.\nconst Replicas = topology.Replicas", "// Replicas is one.\nconst Replicas = 1", map[string]string{"tidy": "-require github.com/solonode/sno/topology", "mutants": "patch/mutants.yaml: two"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := sample()
			if test.file != "" {
				if strings.Count(files[test.file], test.old) != 1 {
					t.Fatalf("%q must occur once in %s", test.old, test.file)
				}
				files[test.file] = strings.Replace(files[test.file], test.old, test.new, 1)
			}
			ws := repository(t, files)
			steps, err := Select(all)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				err := step.Run(t.Context(), ws, io.Discard)
				text, wantFault := test.want[step.Name]
				switch {
				case !wantFault && err != nil:
					t.Errorf("%s: %v", step.Name, err)
				case wantFault && err == nil:
					t.Errorf("%s found nothing, want %q", step.Name, text)
				case wantFault && !strings.Contains(err.Error(), text):
					t.Errorf("%s found %v, want %q", step.Name, err, text)
				}
			}
		})
	}
}

func TestMissingMutantsFile(t *testing.T) {
	files := sample()
	delete(files, "topology/mutants.yaml")
	err := checkMutants(t.Context(), repository(t, files), io.Discard)
	if err == nil || err.Error() != "topology: has no mutants.yaml" {
		t.Errorf("got %v", err)
	}
}

// TestGenerated uses a stand-in for the generator, which tools/run starts.
func TestGenerated(t *testing.T) {
	files := sample()
	files["patch/cmd/patch-controller/main.go"] = "package main\n\nfunc main() {}\n"
	files["tools/run"] = "#!/bin/sh\nfor last; do :; done\necho \"role $2 $3\" >\"${last#output:rbac:dir=}/role.yaml\"\n"
	ws := repository(t, files)
	if err := os.Chmod(ws.Path("tools/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkGenerated(t.Context(), ws, io.Discard); err == nil || !strings.Contains(err.Error(), "patch/config/rbac/role.yaml: does not match the markers") {
		t.Errorf("without a generated file: got %v", err)
	}
	generated, err := Generate(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch/config/rbac", "hack/api/topology.txt", "hack/api/patch.txt"}, generated); diff != "" {
		t.Errorf("generated (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(ws.Path("patch/config/rbac/role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("role rbac:roleName=patch-controller paths=./controller/...\n", string(text)); diff != "" {
		t.Errorf("generated file (-want +got):\n%s", diff)
	}
	if err := checkGenerated(t.Context(), ws, io.Discard); err != nil {
		t.Errorf("right after generating: %v", err)
	}
	if err := os.WriteFile(ws.Path("patch/config/rbac/role.yaml"), []byte("by hand\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := checkGenerated(t.Context(), ws, io.Discard); err == nil {
		t.Error("a file changed by hand was not noticed")
	}
}

func TestRunReportsAllSteps(t *testing.T) {
	step := func(name string, err error) Step {
		return Step{name, "about " + name, func(context.Context, *workspace.Workspace, io.Writer) error { return err }}
	}
	var out bytes.Buffer
	failed, err := Run(t.Context(), nil, []Step{step("one", Findings{"a.go:1: bad", "a.go:2: bad"}), step("two", nil), step("three", errors.New("broken"))}, &out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if failed != 2 {
		t.Errorf("%d failed, want 2", failed)
	}
	got := regexp.MustCompile(`\d+\.\d s`).ReplaceAllString(out.String(), "0.0 s")
	want := `[1/3] one: about one
    a.go:1: bad
    a.go:2: bad
[2/3] two: about two
[3/3] three: about three
    broken

STEP   RESULT  TIME   WHAT
one    FAILED  0.0 s  about one
two    ok      0.0 s  about two
three  FAILED  0.0 s  about three
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestRunPrintsAllHits(t *testing.T) {
	long := &listing{faults: Findings{"a fault"}, summary: "summary"}
	for i := range maxHits + 2 {
		long.hits = append(long.hits, fmt.Sprintf("hit %d", i))
	}
	steps := []Step{{"one", "about one", func(context.Context, *workspace.Workspace, io.Writer) error { return long }}}
	for all, want := range map[bool]string{
		false: "    hit 49\n    and 2 more; the flag -all prints them\n    summary\n",
		true:  "    hit 49\n    hit 50\n    hit 51\n    summary\n",
	} {
		var out bytes.Buffer
		if _, err := Run(t.Context(), nil, steps, &out, Options{All: all}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "    a fault\n    hit 0\n") || !strings.Contains(out.String(), want) {
			t.Errorf("all %t: got\n%s\nwant the fault, the hits from 0 on, and\n%s", all, &out, want)
		}
	}
}

func TestSelect(t *testing.T) {
	steps, err := Select([]string{"lint", "versions"})
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[0].Name != "versions" || steps[1].Name != "lint" {
		t.Errorf("got %v, want versions and lint in the order in which they run", steps)
	}
	if _, err := Select([]string{"nope"}); !errors.Is(err, ErrUnknownStep) {
		t.Errorf("got %v, want %v", err, ErrUnknownStep)
	}
	if steps, err := Select(nil); err != nil || len(steps) != len(Steps()) {
		t.Errorf("without names: %d steps, %v; want all", len(steps), err)
	}
}

func TestFirstChanges(t *testing.T) {
	diff := "patch: go mod tidy -diff: exit status 1\ndiff current/go.mod tidy/go.mod\n--- current/go.mod\n+++ tidy/go.mod\n@@ -1 +1 @@\n context\n-\tgone v1\n+\tcome v1\n+)\n" +
		"diff current/go.sum tidy/go.sum\n--- current/go.sum\n+++ tidy/go.sum\n" + strings.Repeat("-example.com/x v1 h1:=\n", 20)
	want := "patch: go mod tidy -diff: exit status 1\n-\tgone v1\n+\tcome v1\n+)\n" + strings.Repeat("-example.com/x v1 h1:=\n", 9) + "... and 11 more lines"
	if diff := cmp.Diff(want, firstChanges(diff)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
