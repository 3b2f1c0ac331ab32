// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
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
	const source = "package ingress\n\nconst (\n\tReasonOwn   = \"Own\" // comment\n\tReasonTaken = patch.ReasonShared\n\tOther = 1\n)\n"
	pages := map[string]string{"ingress/README.md": "| `Own`, `Shared` | False | |\n", reasonsFile: "| `Own` | all |\n| `Shared` | all |\n"}
	for _, test := range []struct{ file, old, want string }{
		{reasonsFile, "none", ""},
		{"ingress/README.md", "`Own`", "ingress/README.md: lacks the reason Own of ingress/decision/names.go"},
		{reasonsFile, "`Shared`", "docs/troubleshooting.md: lacks the reason Shared of ingress/decision/names.go"},
	} {
		edited := maps.Clone(pages)
		edited[test.file] = strings.Replace(edited[test.file], test.old, "", 1)
		faults := strings.Join(reasonFaults(edited, "ingress", source), "\n")
		if !strings.HasPrefix(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("without %s: got %q, want %q", test.old, faults, test.want)
		}
	}
}
