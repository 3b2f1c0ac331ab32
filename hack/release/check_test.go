// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/zip"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

func examples() fstest.MapFS {
	return fstest.MapFS{
		"topology/main.go": {Data: []byte("package main\n\nimport \"github.com/solonode/sno/topology\"\n\nfunc main() { println(topology.Replicas) }\n")},
		"patch/main.go":    {Data: []byte("package main\n\nimport \"github.com/solonode/sno/patch\"\n\nfunc main() { println(patch.Replicas()) }\n")},
	}
}

// TestCheck breaks one thing at a time that the workspace and the replace lines hide.
func TestCheck(t *testing.T) {
	const replace = "replace github.com/solonode/sno/topology => ../topology\n"
	for name, test := range map[string]struct {
		files     func(t *testing.T) map[string]string
		untracked string
		changed   string
		examples  func(fstest.MapFS)
		want      string
	}{
		"nothing wrong": {},
		"a sibling's version that is not released": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "patch/go.mod", "topology v0.1.0", "topology v0.1.1")
			},
			want: "imports\n\tgithub.com/solonode/sno/topology: module lookup disabled",
		},
		"a sibling without a release": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "hack/versions.yaml", "libraries: [topology, patch]", "libraries: [patch]")
			},
			want: "imports\n\tgithub.com/solonode/sno/topology: module lookup disabled",
		},
		"a dependency that only replace provides": {
			files: func(t *testing.T) map[string]string {
				files := replaced(t, sample(), "patch/go.mod", replace, replace+
					"\nrequire example.com/nested v0.0.0-00010101000000-000000000000\n\nreplace example.com/nested => ../topology/nested\n")
				return replaced(t, files, "patch/patch.go", "import \"", "import _ \"example.com/nested\"\nimport \"")
			},
			want: "imports\n\texample.com/nested: module lookup disabled",
		},
		"a file that is not tracked": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "topology/topology.go", "const Replicas = 1", "const Replicas = one")
			},
			untracked: "topology/one.go",
			want:      "undefined: one",
		},
		"a change that is not committed": {changed: "package topology\n\nconst Replicas = one\n", want: "undefined: one"},
		"a higher version of Go": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "topology/go.mod", "go 1.25.0", "go 1.26.0")
			},
			want: "needs Go 1.26.0, must need 1.25.0 (floor leg)",
		},
		"no example": {examples: func(f fstest.MapFS) { delete(f, "patch/main.go") }, want: "examples/patch has no program"},
		"an example that fails": {
			examples: func(f fstest.MapFS) {
				f["patch/main.go"].Data = append(f["patch/main.go"].Data, "\nfunc init() { panic(\"it fails\") }\n"...)
			},
			want: "it fails",
		},
		"an example that does not vet": {
			examples: func(f fstest.MapFS) {
				f["patch/main.go"].Data = append(f["patch/main.go"].Data, "\nfunc none() { for { }; println() }\n"...)
			},
			want: "go vet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOPROXY", "off")
			files, with := sample(), examples()
			if test.files != nil {
				files = test.files(t)
			}
			root := commit(t, files)
			if test.untracked != "" {
				write(t, root, test.untracked, "package topology\n\nconst one = 1\n")
			}
			if test.changed != "" {
				write(t, root, "topology/topology.go", test.changed)
			}
			if test.examples != nil {
				test.examples(with)
			}
			var out strings.Builder
			err := Check{Root: root, Examples: with, Out: &out}.Run(t.Context())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%v\n%s", err, &out)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestVersionFaults(t *testing.T) {
	pins := &versions.File{
		Go:      map[versions.Leg]string{versions.Floor: "1.25.0", versions.Newest: "1.26.0"},
		Pins:    []versions.Pin{{Modules: []string{"k8s.io/api", "k8s.io/kms"}, Floor: "v0.35.2", Newest: "v0.36.3"}},
		Release: versions.Release{Version: "v0.1.0"},
	}
	modules := map[string]string{"k8s.io/api": "v0.35.2"}
	const right = "example.com/m  1.25.0\nk8s.io/api v0.35.2 1.25.0\nk8s.io/kms v0.34.0 1.24.0\ngithub.com/solonode/sno/patch v0.1.0 1.25.0\n"
	for _, test := range []struct{ old, new, want string }{
		{},
		{"k8s.io/api v0.35.2", "k8s.io/api v0.35.3", "go list -m selects k8s.io/api v0.35.3, must be v0.35.2 (floor leg)"},
		{"sno/patch v0.1.0", "sno/patch v0.1.1", "go list -m selects github.com/solonode/sno/patch v0.1.1, must be v0.1.0 (floor leg)"},
		{"m  1.25.0", "m  1.25.9", "needs Go 1.25.9, must need 1.25.0 (floor leg)"},
	} {
		err := versionFaults(strings.Replace(right, test.old, test.new, 1), pins, versions.Floor, modules)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: got %v, want %q", test.new, err, test.want)
		}
	}
}

func TestProxyFiles(t *testing.T) {
	root := commit(t, sample())
	write(t, root, "topology/untracked.go", "package topology\n")
	write(t, root, "topology/topology.go", "package changed\n")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, root, "worktree", "add", "--quiet", "--detach", linked)
	folder := t.TempDir()
	if err := writeProxy(t.Context(), repository{linked}, folder, git(t, root, "rev-parse", "HEAD"), "v0.1.0", []string{"topology"}); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(folder, "github.com/solonode/sno/topology/@v/v0.1.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := archive.Close(); err != nil {
			t.Error(err)
		}
	}()
	var names []string
	for _, file := range archive.File {
		names = append(names, strings.TrimPrefix(file.Name, "github.com/solonode/sno/topology@v0.1.0/"))
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"LICENSE", "go.mod", "topology.go"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := writeProxy(t.Context(), repository{root}, folder, "HEAD", "v0.1.0", []string{"gone"}); err == nil {
		t.Error("a module that is not in the commit is no error")
	}
}

func TestExamples(t *testing.T) {
	ws, err := workspace.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := versions.Read(ws.Path(versionsFile))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(Examples(), ".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		folders = append(folders, entry.Name())
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(pins.Release.Libraries)), folders); diff != "" {
		t.Errorf("libraries of %s and their examples (-want +got):\n%s", versionsFile, diff)
	}
}
