// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinks(t *testing.T) {
	pages := map[string]string{
		"docs/a.md": "# A page: one\n\n<a id=\"x-1\"></a> [self](#a-page-one) [other](../README.md#top) [folder](../patch) [web](https://example.com/x#y)\n",
		"README.md": "# Top\n\n[anchor](docs/a.md#x-1)\n[gone](gone.md) [heading](docs/a.md#b) [anchor](docs/a.md#x-10) [own](#none)\n",
	}
	want := findings{
		"README.md: links to #none, which does not exist", "README.md: links to docs/a.md#b, which does not exist",
		"README.md: links to docs/a.md#x-10, which does not exist", "README.md: links to gone.md, which does not exist",
	}
	exists := func(name string) bool { return pages[name] != "" || name == "patch" }
	if diff := cmp.Diff(want, linkFaults(pages, exists)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestReasons(t *testing.T) {
	const shared = "package patch\n\nconst (\n\tReasonShared = \"Shared\"\n\tReasonUnused = \"Unused\"\n)\n"
	names := "package ingress\n\nconst (\n\tReasonOwn   = \"Own\"\n\tReasonTaken = patch.ReasonShared\n\tOther = 1\n)\n"
	readme := "# ingress\n\n## " + strings.ReplaceAll(readmeHeadings, ", ", "\n\n## ") + "\n\n| reason | in force | what |\n|---|---|---|\n| `Own` | True | |\n| `Shared`, `Unused` | False | |\n\n| `Else` | x | |\n"
	table := "# Reasons\n\n<!-- reasons -->\n| reason | modules | what |\n|---|---|---|\n| `Own`, `Shared`, `Unused` | all | `Words` |\n<!-- end of reasons -->\n| `Elsewhere` | x | |\n"
	for name, test := range map[string]struct {
		text     *string
		old, new string
		want     string
	}{
		"nothing wrong":           {&names, "", "", ""},
		"reason is new":           {&names, "Other = 1", "ReasonNew = \"New\"", "names.go has [Own Shared New]"},
		"reason is renamed":       {&names, `"Own"`, `"Owned"`, "explains the reasons [Own Shared Unused]; the code has [Owned Shared Unused]"},
		"row of a README is gone": {&readme, "| `Own` | True | |\n", "", "ingress/README.md: has the reasons [Shared]; names.go has [Own Shared]"},
		"README has one more":     {&readme, "`Own`", "`Own`, `Strange`", "ingress/README.md: has the reasons [Own Strange Shared]"},
		"heading is gone":         {&readme, "## Undo it\n", "", "ingress/README.md: has the headings What it does for you, What it changes, Run it, Vendor it"},
		"row is gone":             {&table, "`Own`, ", "", "explains the reasons [Shared Unused]; the code has [Own Shared Unused]"},
		"all modules but this":    {&table, "| all |", "| all but ingress |", `has Own for the modules "all but ingress"; ingress/README.md has it: true`},
		"modules of others":       {&table, "| all |", "| console |", `has Shared for the modules "console"; ingress/README.md has it: true`},
		"modules by name":         {&table, "| all |", "| console, ingress |", ""},
		"all modules but another": {&table, "| all |", "| all but console |", ""},
	} {
		before := *test.text
		*test.text = strings.Replace(before, test.old, test.new, 1)
		faults := strings.Join(reasonFaults(map[string]string{"ingress/README.md": readme, reasonsFile: table}, map[string]string{"ingress": names}, shared), "\n")
		*test.text = before
		if !strings.Contains(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("%s: got %q, want %q", name, faults, test.want)
		}
	}
}
