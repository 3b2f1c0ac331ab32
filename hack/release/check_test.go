// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/hack/versions"
)

// TestCheck breaks one thing at a time that the workspace and the replace lines hide.
func TestCheck(t *testing.T) {
	const replace = "replace github.com/solonode/sno/topology => ../topology\n"
	for name, test := range map[string]struct {
		files     func(t *testing.T) map[string]string
		untracked string
		changed   string
		want      string
	}{
		"nothing wrong": {},
		"a sibling's version that is not released": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "patch/go.mod", "topology v0.1.0", "topology v0.1.1")
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
			want: "needs Go 1.26.0, must need 1.25.0",
		},
		"a test that fails": {
			files: func(t *testing.T) map[string]string {
				return replaced(t, sample(), "patch/patch_test.go", "if Replicas() != 1", "if Replicas() == 1")
			},
			want: "not one replica",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOPROXY", "off")
			files := sample()
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
			var out strings.Builder
			err := Check{Root: root, Out: &out}.Run(t.Context())
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
		Go:      map[versions.Column]string{versions.Set: "1.25.0", versions.Newest: "1.26.0"},
		Pins:    []versions.Pin{{Modules: []string{"k8s.io/api", "k8s.io/kms"}, Floor: "v0.35.2", Set: "v0.35.2", Newest: "v0.36.3"}},
		Release: versions.Release{Version: "v0.1.0"},
	}
	modules := map[string]string{"k8s.io/api": "v0.35.2"}
	const right = "example.com/m  1.25.0\nk8s.io/api v0.35.2 1.25.0\nk8s.io/kms v0.34.0 1.24.0\ngithub.com/solonode/sno/patch v0.1.0 1.25.0\n"
	for _, test := range []struct {
		old, new, want string
		column         versions.Column
	}{
		{column: versions.Set},
		{"k8s.io/api v0.35.2", "k8s.io/api v0.35.3", "go list -m selects k8s.io/api v0.35.3, must be v0.35.2", versions.Set},
		{"sno/patch v0.1.0", "sno/patch v0.1.1", "go list -m selects github.com/solonode/sno/patch v0.1.1, must be v0.1.0", versions.Set},
		{"m  1.25.0", "m  1.25.9", "needs Go 1.25.9, must need 1.25.0", versions.Set},
		{"m  1.25.0", "m  1.26.0", "", versions.Set},
		{"m  1.25.0", "m  1.26.0", "needs Go 1.26.0, must need 1.25.0", versions.Floor},
	} {
		err := versionFaults(strings.Replace(right, test.old, test.new, 1), pins, test.column, modules)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: got %v, want %q", test.new, err, test.want)
		}
	}
}

func TestCompareAPI(t *testing.T) {
	root := commit(t, sample())
	r := repository{root}
	compare := func(next string) (string, error) {
		var out strings.Builder
		err := compareAPI(t.Context(), r, "HEAD", t.TempDir(), next, []string{"topology", "patch"}, &out)
		return out.String(), err
	}
	if out, err := compare("v0.1.0"); err != nil || strings.Count(out, ": no earlier release to compare with\n") != 2 {
		t.Errorf("without a tag: %v\n%s", err, out)
	}
	git(t, root, "tag", "patch/v0.1.0")
	git(t, root, "tag", "patch/v0.0.9")
	write(t, root, "patch/patch.go", "package patch\n\nimport \"github.com/solonode/sno/topology\"\n\n"+
		"func Replicas() int32 { return topology.Replicas }\n\nfunc New() {}\n")
	write(t, root, "patch/internal/file.go", "package internal\n\nfunc Hidden() {}\n")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "--message=patch: change")
	for next, refused := range map[string]bool{"v0.1.0": false, "v0.1.1": true, "v0.2.0": false} {
		out, err := compare(next)
		if errors.Is(err, ErrRefused) != refused || !refused && err != nil {
			t.Errorf("%s: %v", next, err)
		}
		for _, want := range []string{"topology: no earlier", "patch since v0.1.0: 2 changes", "Replicas: changed from func() int to func() int32", "New: added"} {
			if !strings.Contains(out, want) {
				t.Errorf("printed\n%s\nwant %q", out, want)
			}
		}
	}
}

func TestMustBeCompatible(t *testing.T) {
	for _, test := range []struct {
		last, next string
		want       bool
	}{{"v0.1.0", "v0.2.0", false}, {"v0.1.0", "v0.1.1", true}, {"v0.9.0", "v1.0.0", false}, {"v1.0.0", "v1.1.0", true}, {"v1.0.0-rc.1", "v1.0.0", false}} {
		if got := mustBeCompatible(test.last, test.next); got != test.want {
			t.Errorf("%s after %s: %t", test.next, test.last, got)
		}
	}
}
