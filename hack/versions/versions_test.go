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
go: {set: 1.25.0, newest: 1.26.0}
governed: [k8s.io/, github.com/openshift/]
pins:
  - {floor: v0.35.0, set: v0.35.2, newest: v0.36.3, modules: [k8s.io/api, k8s.io/client-go]}
unpinned: [k8s.io/utils]
release:
  # A comment.
  version: v0.1.0
  libraries: [topology, patch]
  programs: []
`

func good() map[string]string {
	return map[string]string{
		"go.work":            "go 1.26.0\n\nuse (\n\t./topology\n\t./patch\n\t./e2e\n)\n",
		"hack/versions.yaml": pins,
		"topology/go.mod":    "module github.com/solonode/sno/topology\n\ngo 1.25.0\n\nrequire k8s.io/api v0.35.0\n",
		"patch/go.mod": "module github.com/solonode/sno/patch\n\ngo 1.25.0\n\nrequire (\n\tgithub.com/solonode/sno/topology v0.1.0\n" +
			"\tk8s.io/client-go v0.35.0\n\tk8s.io/utils v0.1.0 // indirect\n)\n\nreplace github.com/solonode/sno/topology => ../topology\n",
		"e2e/go.mod": "module github.com/solonode/sno/e2e\n\ngo 1.26.0\n\nrequire k8s.io/api v0.0.0 // indirect\n\nreplace k8s.io/api => k8s.io/api v0.35.2\n",
	}
}

func load(t *testing.T, files map[string]string) (*File, *workspace.Workspace) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
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
	const replace = "needs `replace github.com/solonode/sno/topology => ../topology`: without it `go mod tidy` fails"
	tests := map[string]struct {
		file, old, new string
		want           string
		// stays is set where rewriting go.mod cannot help.
		stays bool
	}{
		"nothing wrong":             {},
		"another version":           {file: "topology/go.mod", old: "v0.35.0", new: "v0.36.3", want: "topology/go.mod: k8s.io/api is v0.36.3, must be v0.35.0"},
		"a library above the floor": {file: "topology/go.mod", old: "v0.35.0", new: "v0.35.2", want: "topology/go.mod: k8s.io/api is v0.35.2, must be v0.35.0"},
		"another module on it":      {file: "e2e/go.mod", old: "v0.35.2", new: "v0.35.0", want: "e2e/go.mod: k8s.io/api is v0.35.0, must be v0.35.2"},
		"replacement counts":        {file: "e2e/go.mod", old: "v0.35.2", new: "v0.36.1", want: "e2e/go.mod: k8s.io/api is v0.36.1, must be v0.35.2"},
		"go of a library":           {file: "patch/go.mod", old: "go 1.25.0", new: "go 1.26.0", want: "patch/go.mod: the go directive must be 1.25.0"},
		"go of others":              {file: "e2e/go.mod", old: "go 1.26.0", new: "go 1.26.1", want: "e2e/go.mod: the go directive must be 1.25.0", stays: true},
		"toolchain line":            {file: "e2e/go.mod", old: "go 1.26.0", new: "go 1.26.0\n\ntoolchain go1.26.8", want: "e2e/go.mod: must have no toolchain line: it would force a Go version on modules that vendor this one"},
		"sibling without replace":   {file: "patch/go.mod", old: "replace github.com/solonode/sno/topology => ../topology", want: "patch/go.mod: " + replace},
		"replace of another place":  {file: "patch/go.mod", old: "=> ../topology", new: "=> ../../topology", want: "patch/go.mod: " + replace},
		"governed but not pinned":   {file: "topology/go.mod", old: "k8s.io/api v0.35.0", new: "github.com/openshift/api v0.1.0", want: "topology/go.mod: github.com/openshift/api is neither pinned nor listed as unpinned in hack/versions.yaml", stays: true},
		"sibling at an old version": {file: "patch/go.mod", old: "sno/topology v0.1.0", new: "sno/topology v0.0.9", want: "patch/go.mod: github.com/solonode/sno/topology is v0.0.9, must be v0.1.0 (release)"},
		"release without module":    {file: "hack/versions.yaml", old: "programs: []", new: "programs: [gone]", want: "hack/versions.yaml: release lists gone, which go.work does not have", stays: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := good()
			var want []string
			if test.file != "" {
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
			again, err := workspace.Load(ws.Root)
			if err != nil {
				t.Fatal(err)
			}
			if faults := Compare(file, again); len(faults) != 0 && !test.stays {
				t.Errorf("after rewriting there is still: %v", faults)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"unknown key":    {"unpinned:", "unpined:", "unpined"},
		"no version":     {"newest: v0.36.3", "newest: latest", `newest "latest" must be versions`},
		"floor above":    {"floor: v0.35.0", "floor: v0.35.3", `floor "v0.35.3" and set "v0.35.2" must be versions, in this order`},
		"no floor":       {"floor: v0.35.0", "floor: lowest", `floor "lowest" and set "v0.35.2" must be versions, in this order`},
		"set above":      {"set: v0.35.2", "set: v0.37.0", `set "v0.37.0" and newest "v0.36.3" must be versions, in this order`},
		"pinned twice":   {"[k8s.io/api, k8s.io/client-go]", "[k8s.io/api, k8s.io/api]", "k8s.io/api is listed twice"},
		"pinned and not": {"[k8s.io/utils]", "[k8s.io/api]", "k8s.io/api is listed twice"},
		"no release":     {"  version: v0.1.0\n", "", "is not a version"},
		"short version":  {"version: v0.1.0", "version: v0.1", `"v0.1" is not a version`},
		"major version":  {"version: v0.1.0", "version: v2.0.0", "v2.0.0 needs module paths that end in /v2"},
		"no go":          {", newest: 1.26.0", "", "go needs set and newest"},
	} {
		_, err := Parse("versions.yaml", []byte(strings.Replace(pins, test.old, test.new, 1)))
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %v with %q", name, err, ErrInvalid, test.want)
		}
	}
}

func TestSetInDocument(t *testing.T) {
	const text = "go get github.com/solonode/sno/cli/cmd/x@v0.0.9 k8s.io/api@v0.0.9\nOf `github.com/solonode/sno/patch@v1.0.0-rc.1`.\n"
	want := "go get github.com/solonode/sno/cli/cmd/x@v0.1.0 k8s.io/api@v0.0.9\nOf `github.com/solonode/sno/patch@v0.1.0`.\n"
	if diff := cmp.Diff(want, SetInDocument(text, "v0.1.0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
