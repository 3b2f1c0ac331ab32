// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (r Release) with(root, version string, out *strings.Builder) Release {
	r.Root, r.Version, r.Out = root, version, out
	if r.Verify == nil {
		r.Verify = func(context.Context, string) error { return nil }
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
	if got := git(t, root, "status", "--porcelain") + git(t, root, "worktree", "prune", "--dry-run"); got != "" {
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
		"hack/versions.yaml": "version: v0.2.0\n",
		"docs/page.md":       "go get github.com/solonode/sno/patch@v0.2.0\n",
		"patch/go.mod":       "require github.com/solonode/sno/topology v0.2.0\n",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is\n%s\nwant %q", name, text, want)
		}
	}
}

// TestNothingRemains lets one step of a release fail at a time, and compares the repository with its state before.
func TestNothingRemains(t *testing.T) {
	errBroken := errors.New("broken")
	broken := func(context.Context, string) error { return errBroken }
	for name, test := range map[string]struct {
		version string
		// before and during the release, in the checkout.
		before, during func(t *testing.T, root string)
		release        Release
		want           string
	}{
		"not a version":       {version: "0.2.0", want: `"0.2.0" is not a version`},
		"another module path": {version: "v2.0.0", want: "needs module paths that end in /v2"},
		"changes in the tree": {before: func(t *testing.T, root string) { write(t, root, "patch/new.go", "package patch\n") }, want: "patch/new.go"},
		"the tag of a module": {before: func(t *testing.T, root string) { git(t, root, "tag", "patch/v0.2.0") }, want: "the tag patch/v0.2.0 exists"},
		"a later release": {
			before: func(t *testing.T, root string) { git(t, root, "tag", "patch/v0.10.0") },
			want:   "patch has a later release, v0.10.0",
		},
		"no entry":                 {version: "v0.3.0", want: `no section "## [0.3.0]"`},
		"verify fails":             {release: Release{Verify: broken}, want: "make verify: broken"},
		"the commit does not pass": {release: Release{Check: broken}, want: "check of the commit: broken"},
		"a file changes meanwhile": {
			during: func(t *testing.T, root string) { write(t, root, "docs/page.md", "another text\n") },
			want:   "docs/page.md",
		},
		"the branch moves meanwhile": {
			during: func(t *testing.T, root string) {
				git(t, root, "commit", "--quiet", "--allow-empty", "--message=docs: meanwhile")
			},
			want: "fast-forward",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := commit(t, sample())
			if test.before != nil {
				test.before(t, root)
			}
			state := func() string {
				return git(t, root, "log", "--format=%s") + "\n" + git(t, root, "tag", "--list") + "\n" + git(t, root, "worktree", "prune", "--dry-run")
			}
			before, version := state(), "v0.2.0"
			if test.version != "" {
				version = test.version
			}
			if test.during != nil {
				test.release.Verify = func(context.Context, string) error { test.during(t, root); return nil }
			}
			err := test.release.with(root, version, &strings.Builder{}).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(before, strings.ReplaceAll(state(), "docs: meanwhile\n", "")); diff != "" {
				t.Errorf("the repository has changed (-before +after):\n%s", diff)
			}
		})
	}
}
