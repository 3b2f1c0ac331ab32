// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func documented(t *testing.T) map[string]string {
	t.Helper()
	files := sample()
	files["patch/controller/controller.go"] = "// Package controller is small.\npackage controller\n"
	files["ARCHITECTURE.md"] = "# Architecture\n"
	files["patch/result.go"] = "package patch\n\n// Shared.\nconst (\n\tReasonShared = \"Shared\"\n\tReasonUnused = \"Unused\"\n)\n"
	files["patch/names.go"] = "package patch\n\n// Reasons.\nconst (\n\tReasonOwn = \"Own\"\n\tReasonTaken = patch.ReasonShared\n\tOther = 1\n)\n"
	files["patch/config/rbac/role.yaml"] = `---
kind: ClusterRole
metadata: {name: patch-controller}
rules:
- {apiGroups: [""], resources: [nodes, pods/eviction], verbs: [get, create]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
kind: Role
metadata: {name: patch-controller, namespace: here}
rules:
- {apiGroups: [apps], resources: [deployments/status], resourceNames: [one], verbs: [patch, watch]}
`
	files["patch/README.md"] = "# patch\n\n## " + strings.Join(readmeHeadings, "\n\n## ") + "\n\n| reason | in force | what |\n|---|---|---|\n| `Own` | True | |\n| `Shared`, `Unused` | False | |\n\nEnd.\n"
	files["patch/cmd/patch-controller/main.go"] = "package main\n\nfunc main() {}\n"
	for _, other := range handWritten {
		files[other.file] = "kind: ClusterRole\nrules: []\n"
	}
	files[reasonsFile] = "# Troubleshooting\n\n" + reasonsBegin +
		"\n| reason | modules | what |\n|---|---|---|\n| `Own`, `Shared`, `Unused` | all | `Words` |\n" + reasonsEnd + "\n| `Elsewhere` | |\n"
	return files
}

func TestRights(t *testing.T) {
	ws := repository(t, documented(t))
	got, err := rights(ws)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n## patch-controller\n\n| where | what | named | reads | writes |\n|---|---|---|---|---|\n" +
		"| cluster | `nodes`<br>`pods/eviction` |  | get | create |\n" +
		"| cluster | `/metrics` |  | get |  |\n" +
		"| here | `deployments.apps/status` | `one` | watch | patch |\n"
	_, got, _ = strings.Cut(got, rightsIntroduction)
	got, _, _ = strings.Cut(got, "\n## "+handWritten[0].title)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

func TestDocs(t *testing.T) {
	tests := map[string]struct{ file, old, new, want string }{
		"nothing wrong":           {},
		"role has changed":        {"patch/config/rbac/role.yaml", "create]", "create, delete]", "docs/rbac.md: does not match the roles; run make generate"},
		"reason is new":           {"patch/names.go", "Other = 1", "ReasonNew = \"New\"", "docs/troubleshooting.md: does not explain the reason New"},
		"shared reason is gone":   {"patch/result.go", "\tReasonUnused = \"Unused\"\n", "", "docs/troubleshooting.md: explains Unused, which no module has"},
		"row of a README is gone": {"patch/README.md", "| `Own` | True | |\n", "", "patch/README.md: has the reasons [Shared Unused]; names.go has [Own Shared]"},
		"README has one more":     {"patch/README.md", "`Own`", "`Own`, `Strange`", "patch/README.md: has the reasons [Own Strange Shared Unused]"},
		"shared row is gone":      {"patch/README.md", "`Shared`, `Unused`", "`Shared`", `Unused for the modules "all"; patch/README.md has it: false`},
		"all modules but this":    {reasonsFile, "| all |", "| all but patch |", `Unused for the modules "all but patch"; patch/README.md has it: true`},
		"modules of others":       {reasonsFile, "| all |", "| topology |", `Shared for the modules "topology"; patch/README.md has it: true`},
		"modules by name":         {reasonsFile, "| all |", "| topology, patch |", ""},
		"all modules but another": {reasonsFile, "| all |", "| all but topology |", ""},
		"order of a README":       {"patch/README.md", "| `Own` | True | |\n| `Shared`, `Unused` | False | |\n", "| `Shared` | | |\n| `Own` | | |\n", "[Shared Own]"},
		"heading is gone":         {"patch/README.md", "## Undo it\n", "", `patch/README.md: has the headings ["What it does for you" "What it changes" "Run it" "Vendor it"`},
		"heading is renamed":      {"patch/README.md", "## Flags", "## Options", `"Metrics" "Options" "Known limits"]; all modules`},
		"reason is renamed":       {"patch/names.go", `"Own"`, `"Owned"`, "does not explain the reason Owned"},
		"no such shared reason":   {"patch/names.go", "patch.ReasonShared", "patch.ReasonLost", "patch/result.go has no such reason"},
		"reason is computed":      {"patch/names.go", `"Own"`, `"O" + "wn"`, "is neither a text nor a reason of patch/result.go"},
		"row is gone":             {reasonsFile, "| `Own`, `Shared`", "| `Shared`", "does not explain the reason Own"},
		"only in the other cell":  {reasonsFile, "`Own`, `Shared`, `Unused` | all | `Words`", "`Shared` | all | `Own`", "does not explain the reason Own"},
		"link to nowhere":         {reasonsFile, "| `Elsewhere` |", "[gone](../gone.md)", "docs/troubleshooting.md: links to ../gone.md, which does not exist"},
		"link to no heading":      {reasonsFile, "| `Elsewhere` |", "[gone](rbac.md#patch)", "links to #patch, a heading or anchor that docs/rbac.md does not have"},
		"links":                   {reasonsFile, "| `Elsewhere` |", "[a](rbac.md#patch-controller) [b](#troubleshooting) [c](https://example.com/x#y)", ""},
		"anchor in the text":      {reasonsFile, "| `Elsewhere` |", "<a id=\"x-1\"></a>**X** [a](#x-1) [b](../docs/troubleshooting.md#x-1)", ""},
		"link to no anchor":       {reasonsFile, "| `Elsewhere` |", "<a id=\"x-1\"></a>**X** [a](#x-10)", "links to #x-10, a heading or anchor that docs/troubleshooting.md does not have"},
		"no marks":                {reasonsFile, reasonsEnd, "", "needs <!-- reasons --> and <!-- end of reasons --> around its reasons"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ws := repository(t, documented(t))
			text, err := rights(ws)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(ws.Path(rightsFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if test.file != "" {
				text, err := os.ReadFile(ws.Path(test.file))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(ws.Path(test.file), []byte(strings.Replace(string(text), test.old, test.new, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err = checkDocs(t.Context(), ws, io.Discard)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A program with a fixed answer replaces sno-guides, which reports what is wrong with the commands of documents.
func TestCommandsOfDocuments(t *testing.T) {
	files := documented(t)
	files["go.work"] = strings.Replace(files["go.work"], "./patch", "./patch\n\t./e2e", 1)
	files["e2e/go.mod"] = "module github.com/solonode/sno/e2e\n\ngo 1.25.0\n"
	const program = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfmt.Print(%s)\n\tos.Exit(len(os.Args) - 1)\n}\n"
	const both = `"docs/a.md:3: first\npatch/README.md:5: second\n"`
	for name, test := range map[string]struct {
		prints string
		focus  []string
		want   string
	}{
		"all documents":  {both, nil, "docs/a.md:3: first\npatch/README.md:5: second"},
		"of a module":    {both, []string{"patch"}, "patch/README.md:5: second"},
		"of another one": {both, []string{"topology"}, ""},
		"it fails":       {`""`, nil, "check the commands of the documents: exit status 1"},
		"does not build": {`none`, nil, "undefined: none"},
	} {
		t.Run(name, func(t *testing.T) {
			files["e2e/cmd/sno-guides/main.go"] = strings.Replace(program, "%s", test.prints, 1)
			ws := repository(t, files)
			if err := ws.Focus(test.focus...); err != nil {
				t.Fatal(err)
			}
			faults, err := guideFaults(t.Context(), ws)
			got := strings.Join(faults, "\n")
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != test.want || err != nil && (test.want == "" || !strings.Contains(got, test.want)) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
