// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// withAPI is sample with golden files that match.
func withAPI(t *testing.T) *workspace.Workspace {
	t.Helper()
	files := sample()
	files["CHANGELOG.md"] = "# Changelog\n\n## [Unreleased]\n"
	files["docs/page.md"] = "A page.\n"
	files["patch/patch.go"] += "\n// Kind has a field and a method.\ntype Kind struct{ Field, Other int }\n\n" +
		"// Method does nothing.\nfunc (Kind) Method(name string) {}\n"
	files["patch/controller/controller.go"] = "// Package controller is for programs.\npackage controller\n\n// Run has no promise.\nfunc Run() {}\n"
	ws := repository(t, files)
	if _, err := generateAPI(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hack/api/topology.txt", "hack/api/patch.txt"} {
		change(t, ws, name, "+ ", "")
	}
	return ws
}

// change replaces a text everywhere in a file.
func change(t *testing.T, ws *workspace.Workspace, name, old, new string) {
	t.Helper()
	text, err := os.ReadFile(ws.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in %s:\n%s", old, name, text)
	}
	if err := os.WriteFile(ws.Path(name), []byte(strings.ReplaceAll(string(text), old, new)), 0o644); err != nil {
		t.Fatal(err)
	}
}

const patchAPI = `pkg patch, const Replicas untyped int = 1
pkg patch, method (Kind) Method(string)
pkg patch, type Kind struct
pkg patch, type Kind struct, Field int
pkg patch, type Kind struct, Other int
`

func TestAPI(t *testing.T) {
	const gone = " is gone or has changed since the last release; describe it in CHANGELOG.md, section Unreleased, under Removed or Changed"
	for name, test := range map[string]struct {
		file, old, new string
		// before are the faults until -generate, after those that it leaves.
		before, after []string
		golden        string
		changelog     string
	}{
		"nothing":             {golden: patchAPI},
		"name of a parameter": {file: "patch/patch.go", old: "name string", new: "other string", golden: patchAPI},
		"addition": {
			file: "patch/patch.go", old: "Field, Other int", new: "Field, New, Other int",
			before: []string{"+ pkg patch, type Kind struct, New int"},
			golden: strings.Replace(patchAPI, "pkg patch, type Kind struct, Other",
				"+ pkg patch, type Kind struct, New int\npkg patch, type Kind struct, Other", 1),
		},
		"removal": {
			file: "patch/patch.go", old: "Field, Other int", new: "Other int",
			before:    []string{"- pkg patch, type Kind struct, Field int", "hack/api/patch.txt: patch.Kind.Field" + gone},
			after:     []string{"hack/api/patch.txt: patch.Kind.Field" + gone},
			golden:    strings.Replace(patchAPI, "pkg patch, type Kind struct, Field", "- pkg patch, type Kind struct, Field", 1),
			changelog: "### Removed\n\n- `patch.Kind.Field`\n",
		},
		"change": {
			file: "patch/patch.go", old: "Replicas = topology.Replicas", new: "Replicas = topology.Replicas + 1",
			before: []string{
				"+ pkg patch, const Replicas untyped int = 2", "- pkg patch, const Replicas untyped int = 1", "hack/api/patch.txt: patch.Replicas" + gone,
			},
			after:     []string{"hack/api/patch.txt: patch.Replicas" + gone},
			golden:    strings.Replace("- "+patchAPI, "= 1\n", "= 1\n+ pkg patch, const Replicas untyped int = 2\n", 1),
			changelog: "### Changed\n\n- patch.Replicas.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws := withAPI(t)
			check := func(when string, want []string) {
				t.Helper()
				err := checkAPI(t.Context(), ws, io.Discard)
				if len(want) == 0 && err != nil || len(want) > 0 && err == nil {
					t.Errorf("%s: got %v, want %q", when, err, want)
				}
				for _, want := range want {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%s: got %v, want %q", when, err, want)
					}
				}
			}
			if test.file != "" {
				change(t, ws, test.file, test.old, test.new)
			}
			if len(test.before) > 0 {
				test.before = append(test.before, "hack/api/patch.txt: does not match the code; run `go run -C hack ./cmd/verify -generate patch`")
			}
			check("before", test.before)
			if _, err := generateAPI(t.Context(), ws); err != nil {
				t.Fatal(err)
			}
			check("after -generate", test.after)
			text, err := os.ReadFile(ws.Path("hack/api/patch.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.golden, string(text)); diff != "" {
				t.Errorf("golden file (-want +got):\n%s", diff)
			}
			if test.changelog != "" {
				change(t, ws, "CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n### Added\n\n- patch.Kind.Field, patch.Replicas\n")
				check("in another section", test.after)
				change(t, ws, "CHANGELOG.md", "### Added\n", test.changelog+"\n### Added\n")
				check("with an entry", nil)
			}
		})
	}
}

func TestAPIOfTheLastRelease(t *testing.T) {
	ws := withAPI(t)
	for _, args := range [][]string{
		{"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=all: begin"}, {"tag", "patch/v0.1.0"},
	} {
		if err := run(t.Context(), ws, ".", nil, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	change(t, ws, "patch/patch.go", "Field, Other int", "Other int")
	change(t, ws, "hack/api/patch.txt", "pkg patch, type Kind struct, Field int\n", "")
	err := checkAPI(t.Context(), ws, io.Discard)
	if want := "hack/api/patch.txt: lacks a line of patch/v0.1.0: pkg patch, type Kind struct, Field int"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAPIDocument(t *testing.T) {
	ws := withAPI(t)
	text, err := os.ReadFile(ws.Path("docs/api.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "## patch\n\n- [`patch`](../patch) is small.\n\nNo API: `patch/controller`.\n"; !strings.HasSuffix(string(text), want) {
		t.Errorf("got\n%s\nwant %q at the end", text, want)
	}
	change(t, ws, "docs/api.md", "is small", "is large")
	if err := checkAPI(t.Context(), ws, io.Discard); err == nil || err.Error() != "docs/api.md: does not match the packages; run make generate" {
		t.Errorf("an edited document: %v", err)
	}
	item := strings.TrimRight(wrapped("- "+strings.Repeat("word ", 60)), "\n")
	for line := range strings.Lines(item) {
		if len(line) > 131 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if got, want := sentence("holds checks ([Chain]) of a thing:"), "holds checks (`Chain`) of a thing."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
