// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

const pins = `
go: {floor: 1.25.0, newest: 1.26.0}
legs:
  floor: [topology, patch]
  newest: [e2e, e2e/kube]
governed: [k8s.io/, github.com/openshift/]
pins:
  - {floor: v0.35.2, newest: v0.36.3, modules: [k8s.io/api, k8s.io/client-go]}
unpinned: [k8s.io/utils]
release: {version: v0.1.0, libraries: [topology, patch], programs: []}
`

func good() map[string]string {
	return map[string]string{
		"go.work":            "go 1.26.0\n\nuse (\n\t./topology\n\t./patch\n\t./e2e\n)\n",
		"hack/versions.yaml": pins,
		"topology/go.mod":    "module github.com/solonode/sno/topology\n\ngo 1.25.0\n\nrequire k8s.io/api v0.35.2\n",
		"patch/go.mod": `module github.com/solonode/sno/patch

go 1.25.0

require (
	github.com/solonode/sno/topology v0.1.0
	k8s.io/client-go v0.35.2
)

require (
	k8s.io/api v0.35.2 // indirect
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2 // indirect
)

replace github.com/solonode/sno/topology => ../topology
`,
		"e2e/go.mod": "module github.com/solonode/sno/e2e\n\ngo 1.26.0\n\nrequire k8s.io/api v0.36.3\n",
		"e2e/kube/go.mod": `module github.com/solonode/sno/e2e/kube

go 1.26.0

require k8s.io/api v0.0.0 // indirect

replace k8s.io/api => k8s.io/api v0.36.3
`,
		"tools/x/go.mod": "module github.com/solonode/sno/tools/x\n\ngo 1.24.0\n\nrequire k8s.io/api v0.1.0\n",
	}
}

func load(t *testing.T, files map[string]string) (*File, *workspace.Workspace) {
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
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return file, ws
}

func TestCompareAndRewrite(t *testing.T) {
	tests := map[string]struct {
		file, old, new string
		want           string
		// stays is set where rewriting go.mod cannot help.
		stays bool
	}{
		"nothing wrong":             {},
		"version below the floor":   {file: "topology/go.mod", old: "v0.35.2", new: "v0.35.1", want: "topology/go.mod: k8s.io/api is v0.35.1, must be v0.35.2 (floor leg)"},
		"newest version on floor":   {file: "topology/go.mod", old: "v0.35.2", new: "v0.36.3", want: "topology/go.mod: k8s.io/api is v0.36.3, must be v0.35.2 (floor leg)"},
		"indirect requirement":      {file: "patch/go.mod", old: "k8s.io/api v0.35.2", new: "k8s.io/api v0.35.9", want: "patch/go.mod: k8s.io/api is v0.35.9, must be v0.35.2 (floor leg)"},
		"floor version on newest":   {file: "e2e/go.mod", old: "v0.36.3", new: "v0.35.2", want: "e2e/go.mod: k8s.io/api is v0.35.2, must be v0.36.3 (newest leg)"},
		"replacement counts":        {file: "e2e/kube/go.mod", old: "v0.36.3", new: "v0.36.1", want: "e2e/kube/go.mod: k8s.io/api is v0.36.1, must be v0.36.3 (newest leg)"},
		"go directive":              {file: "patch/go.mod", old: "go 1.25.0", new: "go 1.26.0", want: "patch/go.mod: the go directive must be 1.25.0 (floor leg)"},
		"toolchain line":            {file: "e2e/go.mod", old: "go 1.26.0", new: "go 1.26.0\n\ntoolchain go1.26.8", want: "e2e/go.mod: must have no toolchain line: it would force a Go version on modules that vendor this one"},
		"sibling without replace":   {file: "patch/go.mod", old: "replace github.com/solonode/sno/topology => ../topology", new: "", want: "patch/go.mod: needs `replace github.com/solonode/sno/topology => ../topology`: without it GOWORK=off and `go mod tidy` fail"},
		"replace of another place":  {file: "patch/go.mod", old: "=> ../topology", new: "=> ../../topology", want: "patch/go.mod: needs `replace github.com/solonode/sno/topology => ../topology`: without it GOWORK=off and `go mod tidy` fail"},
		"governed but not pinned":   {file: "topology/go.mod", old: "require k8s.io/api v0.35.2", new: "require github.com/openshift/api v0.1.0", want: "topology/go.mod: github.com/openshift/api is neither pinned nor listed as unpinned in hack/versions.yaml", stays: true},
		"module on no leg":          {file: "hack/versions.yaml", old: "floor: [topology, patch]", new: "floor: [topology]", want: "patch/go.mod: hack/versions.yaml lists this module on no leg", stays: true},
		"sibling at an old version": {file: "patch/go.mod", old: "sno/topology v0.1.0", new: "sno/topology v0.0.9", want: "patch/go.mod: github.com/solonode/sno/topology is v0.0.9, must be v0.1.0 (release)"},
		"sibling without a release": {file: "hack/versions.yaml", old: "libraries: [topology, patch]", new: "libraries: [patch]", want: "patch/go.mod: is released, and requires github.com/solonode/sno/topology, which hack/versions.yaml does not list under release", stays: true},
		"version of no release":     {file: "hack/versions.yaml", old: "libraries: [topology, patch]", new: "libraries: []", want: "patch/go.mod: github.com/solonode/sno/topology is v0.1.0, must be v0.0.0-00010101000000-000000000000 (release)"},
		"replacement in a release":  {file: "topology/go.mod", old: "require k8s.io/api v0.35.2", new: "require k8s.io/api v0.35.1\n\nreplace k8s.io/api => k8s.io/api v0.35.2", want: "topology/go.mod: is released, and replaces k8s.io/api, which has no effect in other repositories", stays: true},
		"exclusion in a release":    {file: "topology/go.mod", old: "require k8s.io/api v0.35.2", new: "require k8s.io/api v0.35.2\n\nexclude k8s.io/api v0.35.3", want: "topology/go.mod: is released, and excludes k8s.io/api@v0.35.3, which has no effect in other repositories", stays: true},
		"release without module":    {file: "hack/versions.yaml", old: "programs: []", new: "programs: [gone]", want: "hack/versions.yaml: release lists gone, which has no go.mod", stays: true},
		"leg without module":        {file: "hack/versions.yaml", old: "floor: [topology, patch]", new: "floor: [topology, patch, gone]", want: "hack/versions.yaml: legs.floor lists gone, which has no go.mod", stays: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := good()
			var want []string
			if test.file != "" {
				if strings.Count(files[test.file], test.old) != 1 {
					t.Fatalf("%q must occur once in %s", test.old, test.file)
				}
				files[test.file] = strings.Replace(files[test.file], test.old, test.new, 1)
				want = []string{test.want}
			}
			file, ws := load(t, files)
			if diff := cmp.Diff(want, Compare(file, ws)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}

			changed, err := Rewrite(file, ws)
			if err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 && len(changed) != 0 {
				t.Errorf("rewrote %v, although nothing was wrong", changed)
			}
			if test.stays {
				return
			}
			again, err := workspace.Load(ws.Root)
			if err != nil {
				t.Fatal(err)
			}
			if faults := Compare(file, again); len(faults) != 0 {
				t.Errorf("after rewriting there is still: %v", faults)
			}
		})
	}
}

func TestReadRejects(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"unknown key":       {"unpinned:", "unpined:", "unpined"},
		"no version":        {"newest: v0.36.3", "newest: latest", `"latest" is not a version`},
		"floor above":       {"floor: v0.35.2", "floor: v0.37.0", "floor v0.37.0 is above newest v0.36.3"},
		"pinned twice":      {"[k8s.io/api, k8s.io/client-go]", "[k8s.io/api, k8s.io/api]", "k8s.io/api is pinned twice"},
		"pinned and not":    {"[k8s.io/utils]", "[k8s.io/api]", "both pinned and unpinned"},
		"no modules":        {"[k8s.io/api, k8s.io/client-go]", "[]", "lists no modules"},
		"on both legs":      {"[e2e, e2e/kube]", "[e2e, patch]", "patch is on both legs"},
		"no release":        {"release: {version: v0.1.0,", "release: {", "is not a version"},
		"short version":     {"version: v0.1.0", "version: v0.1", `"v0.1" is not a version`},
		"major version":     {"version: v0.1.0", "version: v2.0.0", "v2.0.0 needs module paths that end in /v2"},
		"released twice":    {"programs: []", "programs: [patch]", "patch is listed twice"},
		"no go for one leg": {", newest: 1.26.0", "", "the newest leg has no version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Count(pins, test.old) != 1 {
				t.Fatalf("%q must occur once", test.old)
			}
			file := filepath.Join(t.TempDir(), "versions.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(pins, test.old, test.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Read(file)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, ErrInvalid, test.want)
			}
		})
	}
}

func TestSetRelease(t *testing.T) {
	const text = "pins: []\n\n# A comment.\nrelease:\n  # Another.\n  version: v0.1.0 # why\n  programs: [version]\n\nother:\n  version: v0.1.0\n"
	got, err := SetRelease([]byte(text), "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(text, "v0.1.0", "v0.2.0", 1), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := SetRelease([]byte("release: {version: v0.1.0}\n"), "v0.2.0"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a text without the line: %v", err)
	}
}

func TestDocument(t *testing.T) {
	const text = "go get github.com/solonode/sno/topology@v0.0.9 github.com/solonode/sno/cli/cmd/x@v0.1.0 k8s.io/api@v0.0.9\nOf `github.com/solonode/sno/patch@v1.0.0-rc.1`.\n"
	file := &File{Release: Release{Version: "v0.1.0"}}
	want := []string{
		"a.md:1: has github.com/solonode/sno/topology@v0.0.9, must have v0.1.0 (release)",
		"a.md:2: has github.com/solonode/sno/patch@v1.0.0-rc.1, must have v0.1.0 (release)",
	}
	if diff := cmp.Diff(want, CompareDocument(file, "a.md", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	changed := SetInDocument(text, "v0.1.0")
	if faults := CompareDocument(file, "a.md", changed); len(faults) > 0 || !strings.Contains(changed, "k8s.io/api@v0.0.9") {
		t.Errorf("changed to\n%s\nfaults %v", changed, faults)
	}
}
