// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (r Release) with(root, version string, out *strings.Builder) Release {
	r.Root, r.Version, r.Date, r.Out = root, version, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), out
	if r.Verify == nil {
		r.Verify = func(context.Context) error { return nil }
	}
	if r.Check == nil {
		r.Check = func(context.Context, string) error { return nil }
	}
	return r
}

func TestRelease(t *testing.T) {
	root := commit(t, sample())
	var out strings.Builder
	var checked string
	check := func(_ context.Context, commit string) error { checked = commit; return nil }
	if err := (Release{Check: check}).with(root, "v0.2.0", &out).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := git(t, root, "rev-parse", "HEAD")
	if checked != head {
		t.Errorf("checked %s, released %s", checked, head)
	}
	if got := git(t, root, "show", "--no-patch", "--format=%s"); got != "all: release v0.2.0" {
		t.Errorf("subject %q", got)
	}
	if got := git(t, root, "status", "--porcelain"); got != "" {
		t.Errorf("left:\n%s", got)
	}
	for _, tag := range []string{"topology/v0.2.0", "patch/v0.2.0"} {
		if kind := git(t, root, "cat-file", "-t", tag); kind != "tag" {
			t.Errorf("%s is a %s, want an annotated tag", tag, kind)
		}
		if got := git(t, root, "rev-parse", tag+"^{commit}"); got != head {
			t.Errorf("%s is at %s, want %s", tag, got, head)
		}
	}
	for name, want := range map[string]string{
		"CHANGELOG.md":          "## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n### Added\n",
		"hack/versions.yaml":    "version: v0.2.0\n",
		"docs/page.md":          "go get github.com/solonode/sno/patch@v0.2.0\n",
		"patch/go.mod":          "require github.com/solonode/sno/topology v0.2.0\n",
		"hack/api/topology.txt": "pkg topology, const Replicas untyped int = 1\n",
		"hack/api/patch.txt":    "pkg patch, func Replicas() int\n",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) || strings.Contains(string(text), "Gone") {
			t.Errorf("%s is\n%s\nwant %q, and nothing that is gone", name, text, want)
		}
	}
	if want := "API of topology: no earlier release to compare with\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed\n%s\nwant %q", &out, want)
	}

	// The next release has an incompatible change.
	write(t, root, "patch/patch.go", "package patch\n\nimport \"github.com/solonode/sno/topology\"\n\n"+
		"func Replicas() int32 { return topology.Replicas }\n\nfunc New() {}\n")
	write(t, root, "CHANGELOG.md", strings.Replace(sample()["CHANGELOG.md"], "Added", "Changed", 1))
	git(t, root, "commit", "--quiet", "--all", "--message=patch: change")
	out.Reset()
	err := Release{}.with(root, "v0.2.1", &out).Run(t.Context())
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "patch has incompatible changes since v0.2.0, which v0.2.1 may not have") {
		t.Errorf("a patch release with an incompatible change: %v", err)
	}
	if err := (Release{}).with(root, "v0.3.0", &out).Run(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"API of patch since v0.2.0:\n", "Replicas: changed from func() int to func() int32", "New: added"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant %q", &out, want)
		}
	}
}

// TestNothingRemains lets one step of a release fail at a time, and compares the repository with its state before.
func TestNothingRemains(t *testing.T) {
	errBroken := errors.New("broken")
	for name, test := range map[string]struct {
		version string
		before  func(t *testing.T, root string)
		release func(t *testing.T, root string) Release
		want    string
		// keeps is a file that is not the release's.
		keeps string
	}{
		"not a version":       {version: "0.2.0", want: `"0.2.0" is not a version`},
		"another module path": {version: "v2.0.0", want: "needs module paths that end in /v2"},
		"changes in the tree": {before: func(t *testing.T, root string) { write(t, root, "patch/new.go", "package patch\n") }, want: "patch/new.go"},
		"the tag of a module": {before: func(t *testing.T, root string) { git(t, root, "tag", "patch/v0.2.0") }, want: "the tag patch/v0.2.0 exists"},
		"a later release": {
			before: func(t *testing.T, root string) { git(t, root, "tag", "patch/v0.10.0") },
			want:   "patch has a later release, v0.10.0",
		},
		"no entry": {
			before: func(t *testing.T, root string) {
				write(t, root, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")
				git(t, root, "commit", "--quiet", "--all", "--message=docs: empty")
			},
			want: "no entry for v0.2.0",
		},
		"verify fails": {
			release: func(*testing.T, string) Release {
				return Release{Verify: func(context.Context) error { return errBroken }}
			},
			want: "make verify: broken",
		},
		"another file changes meanwhile": {
			release: func(t *testing.T, root string) Release {
				return Release{Verify: func(context.Context) error { write(t, root, "patch/patch.go", "package patch\n"); return nil }}
			},
			want:  "patch/patch.go has changed meanwhile",
			keeps: "patch/patch.go",
		},
		"the commit does not pass": {
			release: func(*testing.T, string) Release {
				return Release{Check: func(context.Context, string) error { return errBroken }}
			},
			want: "check of the commit: broken",
		},
		"a tag appears meanwhile": {
			release: func(t *testing.T, root string) Release {
				return Release{Check: func(context.Context, string) error {
					git(t, root, "update-ref", "refs/tags/patch/v0.2.0/x", "HEAD~")
					return nil
				}}
			},
			want: "create the tags: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := commit(t, sample())
			if test.before != nil {
				test.before(t, root)
			}
			state := func() string {
				tags := strings.ReplaceAll(git(t, root, "tag", "--list"), "patch/v0.2.0/x", "")
				return strings.TrimSpace(git(t, root, "rev-parse", "HEAD") + "\n" + git(t, root, "status", "--porcelain") + "\n" + tags)
			}
			before := state()
			r, out := Release{}, strings.Builder{}
			if test.release != nil {
				r = test.release(t, root)
			}
			version := test.version
			if version == "" {
				version = "v0.2.0"
			}
			err := r.with(root, version, &out).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			after := state()
			if test.keeps != "" {
				after = strings.TrimSpace(strings.Replace(after, "M "+test.keeps, "", 1))
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the repository has changed (-before +after):\n%s", diff)
			}
		})
	}
}
