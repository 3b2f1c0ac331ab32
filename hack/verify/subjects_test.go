// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

func notAnImperative(word string) string {
	return `"` + word + `" is not an imperative; one that ends like this belongs into subjects.imperatives of hack/glossary.yaml`
}

func TestSubjectFaults(t *testing.T) {
	rules := subjectRules{Modules: []string{"all", "ci"}, Imperatives: []string{"pass", "embed", "bring"}}
	form := "is not of the form `module: imperative`"
	module := func(name string) string {
		return `module "` + name + `" is neither a folder at the top of the repository nor one of all, ci`
	}
	tests := map[string]struct {
		subject string
		want    []string
	}{
		"folder":                 {"patch: remove the cache", nil},
		"listed module":          {"ci: raise the limit", nil},
		"one word":               {"patch: simplify", nil},
		"exception":              {"patch: pass the context", nil},
		"exception with -ed":     {"patch: embed the page", nil},
		"exception with -ing":    {"patch: bring the image", nil},
		"capital":                {"patch: Remove the cache", nil},
		"colon later":            {"patch: read status: the spec is not final", nil},
		"72 characters":          {"patch: " + strings.Repeat("a", 65), nil},
		"72 characters of UTF-8": {"patch: write " + strings.Repeat("\u00e4", 59), nil},
		"73 characters":          {"patch: " + strings.Repeat("a", 66), []string{"has 73 characters, at most 72 are allowed"}},
		"no module":              {"remove the cache", []string{form}},
		"empty":                  {"", []string{form}},
		"no space":               {"patch:remove the cache", []string{form}},
		"nothing after":          {"patch: ", []string{form}},
		"two modules":            {"patch, hack: remove the cache", []string{form}},
		"folder below":           {"patch/apply: remove the cache", []string{module("patch/apply")}},
		"unknown module":         {"cache: remove it", []string{module("cache")}},
		"no word":                {"patch: -v is a flag", []string{"no verb follows the module"}},
		"third person":           {"patch: removes the cache", []string{notAnImperative("removes")}},
		"past":                   {"patch: Removed the cache", []string{notAnImperative("removed")}},
		"participle":             {"patch: removing, at last, the cache", []string{notAnImperative("removing")}},
		"three faults": {"Cache: adds " + strings.Repeat("a", 61), []string{
			"has 73 characters, at most 72 are allowed", module("Cache"), notAnImperative("adds"),
		}},
		"long and without form": {strings.Repeat("a", 73), []string{"has 73 characters, at most 72 are allowed", form}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rules.faults(test.subject, []string{"hack", "patch"})); diff != "" {
				t.Errorf("%q (-want +got):\n%s", test.subject, diff)
			}
		})
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestCheckSubjects has faults before and after the first commit that is checked, on two branches and in a merge.
func TestCheckSubjects(t *testing.T) {
	ws := repository(t, sample())
	commit := func(subject string) string {
		git(t, ws.Root, "commit", "--quiet", "--allow-empty", "--message", subject+"\n\nAdds a body.")
		return git(t, ws.Root, "rev-parse", "--short", "HEAD")
	}
	commit("before")
	commit("not checked either")
	since := git(t, ws.Root, "rev-parse", "HEAD")
	trunk := git(t, ws.Root, "branch", "--show-current")
	git(t, ws.Root, "switch", "--quiet", "--create", "side")
	side := commit("patch: adds a cache")
	git(t, ws.Root, "switch", "--quiet", trunk)
	commit("patch: remove the cache")
	nameless := commit("cache: remove it")
	git(t, ws.Root, "merge", "--quiet", "--no-ff", "--message", "Merged the side branch", "side")

	check := func(ws *workspace.Workspace, since string) (Findings, string) {
		t.Helper()
		var notice bytes.Buffer
		faults, err := checkSubjects(t.Context(), ws, &glossary{Since: since, Subjects: subjectRules{Modules: []string{"all"}}}, []string{"patch"}, &notice)
		if err != nil {
			t.Fatal(err)
		}
		return faults, notice.String()
	}
	want := []string{
		`commit ` + nameless + `: "cache: remove it": module "cache" is neither a folder at the top of the repository nor one of all`,
		`commit ` + side + `: "patch: adds a cache": ` + notAnImperative("adds"),
	}
	sorted := cmp.Transformer("sorted", func(f []string) map[string]bool {
		set := map[string]bool{}
		for _, line := range f {
			set[line] = true
		}
		return set
	})
	faults, notice := check(ws, since)
	if diff := cmp.Diff(want, []string(faults), sorted); diff != "" || notice != "" {
		t.Errorf("notice %q, faults (-want +got):\n%s", notice, diff)
	}
	if faults, notice := check(ws, git(t, ws.Root, "rev-parse", "HEAD")); faults != nil || notice != "" {
		t.Errorf("nothing after the commit: got %v, notice %q", faults, notice)
	}

	clone := filepath.Join(t.TempDir(), "clone")
	git(t, ws.Root, "clone", "--quiet", "--depth=1", "file://"+ws.Root, clone)
	exported := t.TempDir()
	if err := os.CopyFS(exported, os.DirFS(filepath.Join(ws.Root, "patch"))); err != nil {
		t.Fatal(err)
	}
	for name, root := range map[string]string{"a shallow clone": clone, "an exported tree": exported} {
		faults, notice := check(&workspace.Workspace{Root: root}, since)
		if faults != nil || !strings.HasPrefix(notice, "      commit subjects are not checked: git does not find commit "+since+" of hack/glossary.yaml") {
			t.Errorf("%s: got %v, notice %q", name, faults, notice)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if faults, notice := check(ws, since); faults != nil || !strings.Contains(notice, "executable file not found") {
		t.Errorf("without git: got %v, notice %q", faults, notice)
	}
}
