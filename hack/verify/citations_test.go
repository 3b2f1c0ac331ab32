// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// made writes numbers that exist only in these tests: R_ING-1 is the number of a requirement, but no citation in this
// file. WORD is a former name.
var made = strings.NewReplacer("R_", "R-", "U_", "U-", "WORD", former, "Word", "Se"+"ed", "FACTS", "facts"+"/")

// numberedDocuments is the sample with requirements, facts, and their citations.
func numberedDocuments() map[string]string {
	files := sample()
	for name, text := range map[string]string{
		requirementsFile: `# Requirements

Numbers look like R_ING-1.

- <a id="r-ing-1"></a>[**R_ING-1**](#r-ing-1-done) There is one router where
  the control plane has one node (U_ING-1).
- <a id="r-ren-1"></a>[**R_REN-1**](#r-ren-1-done) (planned) Manifests are rendered.
- <a id="r-doc-1"></a>[**R_DOC-1**](#r-doc-1-done) (documentation) It is documented.
- <a id="r-suite-1"></a>[**R_SUITE-1**](#r-suite-1-done) (tests) A test asks.
- <a id="r-ing-2"></a>[**R_ING-2**](#r-ing-2-done) There are two otherwise.

## What is done

` + citationsBegin + "\nold\n" + citationsEnd + "\n",
		upstreamFile: `# Facts

- <a id="u-ing-1"></a>**U_ING-1** The operator writes a default.
- <a id="u-ing-2"></a>**U_ING-2** It reads another (U_ING-1, R_ING-1, R_DOC-1).
`,
		checksFile: `# Conformance

R_ING-2 is in no row.

| id | requirement |
|---|---|
| <a id="sno-ing-002"></a>SNO-ING-002 | [R_ING-2](requirements.md#r-ing-2): two, and R_ING-1, and again R_ING-2 |
| SNO-ING-003 | R_ING-2 |
`,
		"README.md":                           "# Readme\n\nAs R_DOC-1 asks.\n",
		"docs/page.md":                        "# Page\n\nR_DOC-1\n",
		"topology/router.go":                  "package topology\n\n// Router implements R_ING-1,R_ING-2. Also R_ING-1.\nconst Router = 1\n",
		"topology/router_test.go":             "package topology\n\n// R_ING-1 again.\n",
		"topology/also.go":                    "package topology\n\n// Also is R_ING-2.\nconst Also = 1\n",
		"topology/testdata/one/expected.yaml": "why: R_SUITE-1\n",
		"conformance/checks/ingress.go":       "package checks\n\nconst requirement = \"R_ING-2\"\n",
		"patch/mutants.yaml":                  files["patch/mutants.yaml"] + "# U_ING-2\n",
	} {
		files[name] = made.Replace(text)
	}
	return files
}

// withTableOfToday is the repository after `make generate`.
func withTableOfToday(t *testing.T, files map[string]string) *workspace.Workspace {
	t.Helper()
	ws := repository(t, files)
	if written, err := generateCitations(t.Context(), ws); err != nil || !written {
		t.Fatalf("written: %t, %v", written, err)
	}
	return ws
}

const wantTable = `Of 5 requirements 2 have code and a test, 1 are planned, 1 ask for tests only and 1 for documentation.

| Requirement | Code | Tests | Conformance checks |
|---|---|---|---|
| <a id="r-ing-1-done"></a>[R_ING-1](#r-ing-1) | [topology/router.go](../topology/router.go) | [topology/router_test.go](../topology/router_test.go) | [SNO-ING-002](conformance.md#sno-ing-002) |
| <a id="r-ren-1-done"></a>[R_REN-1](#r-ren-1) | planned |  |  |
| <a id="r-doc-1-done"></a>[R_DOC-1](#r-doc-1) | documentation<br>[README.md](../README.md)<br>[docs/page.md](page.md) |  |  |
| <a id="r-suite-1-done"></a>[R_SUITE-1](#r-suite-1) | tests | [topology/testdata/one/expected.yaml](../topology/testdata/one/expected.yaml) |  |
| <a id="r-ing-2-done"></a>[R_ING-2](#r-ing-2) | [topology/also.go](../topology/also.go)<br>[topology/router.go](../topology/router.go) | ` +
	`[conformance/checks/ingress.go](../conformance/checks/ingress.go) | [SNO-ING-002](conformance.md#sno-ing-002)<br>SNO-ING-003 |
`

func TestCitationTable(t *testing.T) {
	files := numberedDocuments()
	ws := withTableOfToday(t, files)
	want := strings.Replace(files[requirementsFile], "old\n", made.Replace(wantTable), 1)
	for range 2 { // the table has no citations
		got, err := os.ReadFile(ws.Path(requirementsFile))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatalf("document (-want +got):\n%s", diff)
		}
		if _, err := generateCitations(t.Context(), ws); err != nil {
			t.Fatal(err)
		}
	}
	if faults, err := linkFaults(t.Context(), ws); err != nil || len(faults) > 0 {
		t.Errorf("links: %v, %v", faults, err)
	}
}

func TestCitationTableCountsWhatIsWhole(t *testing.T) {
	files := numberedDocuments()
	edit{"topology/router_test.go", "R_ING-1", "It"}.in(t, files)
	edit{"topology/also.go", "R_ING-2", "It"}.in(t, files)
	edit{"topology/router.go", "R_ING-1,R_ING-2", "R_ING-1"}.in(t, files)
	text, err := os.ReadFile(withTableOfToday(t, files).Path(requirementsFile))
	if err != nil || !strings.Contains(string(text), "\nOf 5 requirements 0 have code and a test,") {
		t.Errorf("one has code only, one a test only: %v\n%s", err, text)
	}
}

func TestGenerateWritesTheTable(t *testing.T) {
	files := numberedDocuments()
	for _, other := range handWritten {
		files[other.file] = "kind: ClusterRole\nrules: []\n"
	}
	ws := repository(t, files)
	generated, err := Generate(t.Context(), ws)
	if err != nil || !slices.Contains(generated, requirementsFile) {
		t.Fatalf("generated %v, %v", generated, err)
	}
	if faults, err := citationFaults(t.Context(), ws, nil); err != nil || len(faults) > 0 {
		t.Errorf("after make generate: %v, %v", faults, err)
	}
}

// An edit changes one text of the workspace; an empty old one makes a new file.
type edit struct{ file, old, new string }

func (e edit) in(t *testing.T, files map[string]string) {
	t.Helper()
	before, old := files[e.file], made.Replace(e.old)
	if strings.Count(before, old) != 1 {
		t.Fatalf("%q must occur once in %s", old, e.file)
	}
	files[e.file] = strings.Replace(before, old, made.Replace(e.new), 1)
}

func TestCitations(t *testing.T) {
	const less = "; an entry that needs less has the mark (planned), (tests) or (documentation)"
	const instead = ": cite the number in docs/requirements.md or docs/upstream.md; what starts a random sequence is a random WORD"
	noTest := edit{"topology/router_test.go", "R_ING-1", "It"}
	noCode := edit{"topology/router.go", "R_ING-1,R_ING-2. Also R_ING-1.", "R_ING-2."}
	suiteCheck := edit{"topology/testdata/one/expected.yaml", "R_SUITE-1", "none"}
	tests := map[string]struct {
		edits []edit
		// want are the faults, after `make generate`.
		want []string
	}{
		"nothing wrong": {},

		"no code":                         {[]edit{noCode}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"no test":                         {[]edit{noTest}, []string{"docs/requirements.md:5: R_ING-1: no test cites it" + less}},
		"neither":                         {[]edit{noCode, noTest}, []string{"docs/requirements.md:5: R_ING-1: neither code nor a test cites it" + less}},
		"hack is no code":                 {[]edit{noCode, {"hack/a.go", "", "package hack // R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"a suite is no code":              {[]edit{noCode, {"e2e/a.go", "", "package e2e // R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"a Go file in testdata is a test": {[]edit{noTest, {"patch/testdata/a.go", "", "package a // R_ING-1\n"}}, nil},
		"an example is no number":         {[]edit{{"e2e/a_test.go", "", "package e2e // R_EXAMPLE-7\n"}}, nil},
		"a stand-in is no code":           {[]edit{noCode, {"testcluster/fakes/a.go", "", "package fakes // R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"a stand-in is a test":            {[]edit{noTest, {"testcluster/fakes/a.go", "", "package fakes // R_ING-1\n"}}, nil},
		"an overview is no code":          {[]edit{noCode, {"topology/doc.go", "", "package topology // R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"a suite is a test":               {[]edit{noTest, {"e2e/matrix.yaml", "", "why: R_ING-1\n"}}, nil},
		"a mutant is no test":             {[]edit{noTest, {"e2e/mutants.yaml", "", "# R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no test cites it" + less}},
		"a page of a suite is no test":    {[]edit{noTest, {"e2e/README.md", "", "R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no test cites it" + less}},
		"a manifest is no code":           {[]edit{noCode, {"patch/config/a.yaml", "", "# R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no code cites it" + less}},
		"another number begins like it":   {[]edit{noTest, {"patch/a_test.go", "", "package patch // R_ING-11, AR_ING-1, X-R_ING-1\n"}}, []string{"docs/requirements.md:5: R_ING-1: no test cites it" + less, "patch/a_test.go:1: cites R_ING-11, which has no entry in docs/requirements.md"}},
		"tests without a test":            {[]edit{suiteCheck, {"topology/also.go", "R_ING-2", "R_SUITE-1"}}, []string{"docs/requirements.md:9: R_SUITE-1: no test cites it"}},
		"documentation without a page": {[]edit{{"docs/page.md", "R_DOC-1", ""}, {"README.md", "R_DOC-1", "it"}, {"patch/a_test.go", "", "package patch // R_DOC-1\n"}}, []string{
			"docs/requirements.md:8: R_DOC-1: no page cites it other than docs/requirements.md and docs/upstream.md",
		}},

		"no such requirement": {[]edit{{"topology/also.go", "R_ING-2", "R_ING-2, R_ING-3, R_ING-3"}}, []string{"topology/also.go:3: cites R_ING-3, which has no entry in docs/requirements.md"}},
		"no such fact":        {[]edit{{"patch/mutants.yaml", "# U_ING-2", "# U_ING-2\n# U_ING-3"}}, []string{"patch/mutants.yaml:3: cites U_ING-3, which has no entry in docs/upstream.md"}},
		"a leading zero":      {[]edit{{"README.md", "R_DOC-1", "R_DOC-01"}}, []string{"README.md:3: cites R_DOC-01, which has no entry in docs/requirements.md"}},
		"an entry of another form": {[]edit{{requirementsFile, "- <a id=\"r-ing-2\"></a>[**R_ING-2**](#r-ing-2-done)", "1. **R_ING-3**"}, {"topology/also.go", "R_ING-2", "it"}, {"topology/router.go", "R_ING-1,R_ING-2", "R_ING-1"}, {"conformance/checks/ingress.go", "R_ING-2", ""}, {checksFile, "R_ING-2 is", "It is"}, {checksFile, "[R_ING-2](requirements.md#r-ing-2): two, and R_ING-1, and again R_ING-2", ""}, {checksFile, "| SNO-ING-003 | R_ING-2 |", ""}}, []string{
			"docs/requirements.md:10: cites R_ING-3, which has no entry in docs/requirements.md",
		}},
		"other files cite nothing": {[]edit{{"a.txt", "", "R_ING-3 and WORD\n"}, {"Makefile", "", "WORD = R_ING-3\n"}}, nil},
		"a binary cites nothing":   {[]edit{{"a.md", "", "R_ING-3 and WORD\x00\n"}}, nil},

		"unused fact":           {[]edit{{"patch/mutants.yaml", "U_ING-2", "none"}}, []string{"docs/upstream.md:4: U_ING-2: nothing outside of docs/upstream.md cites it"}},
		"only its own document": {[]edit{{requirementsFile, " (U_ING-1)", ""}}, []string{"docs/upstream.md:3: U_ING-1: nothing outside of docs/upstream.md cites it"}},
		"a tool needs the fact": {[]edit{{"patch/mutants.yaml", "U_ING-2", "none"}, {"hack/a.go", "", "package hack // U_ING-2\n"}}, nil},
		"a page needs the fact": {[]edit{{"patch/mutants.yaml", "U_ING-2", "none"}, {"README.md", "As ", "U_ING-2, as "}}, nil},

		"former name":                {[]edit{{"README.md", "As ", "As WORD 003 and Word 004 say, "}}, []string{`README.md:3: "WORD"` + instead}},
		"former name in capitals":    {[]edit{{"README.md", "As ", "As Words say, "}}, []string{`README.md:3: "Word"` + instead}},
		"former name in a name":      {[]edit{{"topology/also.go", "const Also", "const PolicyWord"}}, []string{`topology/also.go:4: "Word"` + instead}},
		"former name in YAML":        {[]edit{{"patch/config/a.yml", "", "a: 1\nb: WORD\n"}}, []string{`patch/config/a.yml:2: "WORD"` + instead}},
		"former folder":              {[]edit{{"README.md", "As ", "See (FACTSupstream.md). As "}}, []string{`README.md:3: "FACTS"` + instead}},
		"another folder":             {[]edit{{"README.md", "As ", "See artiFACTSa and facts. As "}}, nil},
		"random numbers":             {[]edit{{"README.md", "As ", "randomWord, RandomWord, random WORD, random-WORD, RANDOM_" + strings.ToUpper(former) + ". As "}}, nil},
		"a random number next to it": {[]edit{{"README.md", "As ", "random WORD, WORD. As "}}, []string{`README.md:3: "WORD"` + instead}},
		"not random":                 {[]edit{{"README.md", "As ", "randomly WORD. As "}}, []string{`README.md:3: "WORD"` + instead}},
		"the variable":               {[]edit{{"README.md", "As ", strings.ToUpper(former) + "=3. As "}}, nil},
		"two lines":                  {[]edit{{"README.md", "As ", "WORD\nWORD\n"}}, []string{`README.md:3: "WORD"` + instead, `README.md:4: "WORD"` + instead}},
		"exempt":                     {[]edit{{"exempt.go", "", "package a\n\nconst old = \"WORD\"\n\nconst older = \"WORD\"\n"}}, nil},
		"exempt only for some of it": {[]edit{{"exempt.go", "", "package a\n\nconst old = \"WORD\" // WORD\n"}}, []string{`exempt.go:3: "WORD"` + instead}},
		"exempt elsewhere":           {[]edit{{"exempt.go", "", "package a\n\nconst old = \"WORD\"\n"}, {"b.go", "", "package a\n\nconst old = \"WORD\"\n"}}, []string{`b.go:3: "WORD"` + instead}},
		"exempt for nothing": {[]edit{{"exempt.go", "", "package a\n"}}, []string{
			`exempt.go:1: no line has the text "WORD" any more (it is accepted); remove it from the exemptions of the step citations`,
		}},

		"planned, but there is code": {[]edit{{"topology/also.go", "R_ING-2", "R_ING-2, R_REN-1"}}, []string{
			"topology/also.go:3: cites R_REN-1, which is planned at docs/requirements.md:7; remove the mark or the citation",
		}},
		"planned, with a test and a page": {[]edit{{"topology/router_test.go", "R_ING-1", "R_ING-1, R_REN-1"}, {"docs/page.md", "R_DOC-1", "R_DOC-1, R_REN-1"}}, nil},
		"doubled": {[]edit{{requirementsFile, "- <a id=\"r-suite-1\"", "- <a id=\"r-ing-1\"></a>[**R_ING-1**](#r-ing-1-done) Again.\n- <a id=\"r-suite-1\""}}, []string{
			"docs/requirements.md:9: R_ING-1: is an entry already at docs/requirements.md:5",
		}},
		"anchor of another":   {[]edit{{requirementsFile, `id="r-ing-2"`, `id="r-ing-3"`}}, []string{`docs/requirements.md:10: R_ING-2: its anchor is "r-ing-3", must be "r-ing-2"`}},
		"anchor in capitals":  {[]edit{{upstreamFile, `id="u-ing-2"`, `id="U_ING-2"`}}, []string{`docs/upstream.md:4: U_ING-2: its anchor is "U_ING-2", must be "u-ing-2"`}},
		"row of another":      {[]edit{{requirementsFile, `(#r-ing-2-done)`, `(#r-ing-1-done)`}}, []string{`docs/requirements.md:10: R_ING-2: its link is "#r-ing-1-done", must be "#r-ing-2-done"`}},
		"no link to its row":  {[]edit{{requirementsFile, `[**R_ING-2**](#r-ing-2-done)`, `**R_ING-2**`}}, []string{`docs/requirements.md:10: R_ING-2: its link is "#", must be "#r-ing-2-done"`}},
		"no anchor":           {[]edit{{upstreamFile, `<a id="u-ing-2"></a>`, ``}}, []string{`docs/upstream.md:4: U_ING-2: its anchor is "", must be "u-ing-2"`}},
		"unknown mark":        {[]edit{{requirementsFile, "(planned)", "(in part)"}}, []string{`docs/requirements.md:7: R_REN-1: has the mark "in part"; the marks are planned, tests and documentation`}},
		"mark of a fact":      {[]edit{{upstreamFile, "U_ING-2** It", "U_ING-2** (planned) It"}}, []string{`docs/upstream.md:4: U_ING-2: has the mark "planned"; only requirements have marks`}},
		"in another document": {[]edit{{upstreamFile, "- <a id=\"u-ing-2\"", "- <a id=\"r-ing-4\"></a>**R_ING-4** (planned) A requirement.\n- <a id=\"u-ing-2\""}}, []string{"docs/upstream.md:4: R_ING-4: belongs into docs/requirements.md"}},
		"a list that cites":   {[]edit{{"README.md", "As ", "- **R_ING-1** is done\n- As "}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := numberedDocuments()
			var exempt []exemption
			for _, e := range test.edits {
				e.in(t, files)
				if e.file == "exempt.go" {
					exempt = []exemption{{"exempt.go", `"` + former + `"`, "it is accepted"}}
				}
			}
			got, err := citationFaults(t.Context(), withTableOfToday(t, files), exempt)
			if err != nil {
				t.Fatal(err)
			}
			var want Findings
			for _, fault := range test.want {
				want = append(want, made.Replace(fault))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOldCitationTable does not generate before it checks.
func TestOldCitationTable(t *testing.T) {
	const noPlace = "needs the lines <!-- citations --> and <!-- end of citations --> around its table"
	tests := map[string]struct {
		edits []edit
		want  string
	}{
		"not generated":     {nil, "docs/requirements.md:14: the table does not match the citations; run make generate"},
		"an entry is gone":  {[]edit{{requirementsFile, "\nold\n", "\n| R_OLD-1 | WORD.go |\n"}}, "docs/requirements.md:14: the table does not match the citations; run make generate"},
		"no begin":          {[]edit{{requirementsFile, citationsBegin + "\n", ""}}, "docs/requirements.md:16: " + noPlace},
		"no end":            {[]edit{{requirementsFile, citationsEnd + "\n", ""}}, "docs/requirements.md:16: " + noPlace},
		"not in this order": {[]edit{{requirementsFile, citationsBegin + "\nold\n" + citationsEnd, citationsEnd + "\nold\n" + citationsBegin}}, "docs/requirements.md:17: " + noPlace},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := numberedDocuments()
			for _, e := range test.edits {
				e.in(t, files)
			}
			ws := repository(t, files)
			got, err := citationFaults(t.Context(), ws, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Findings{test.want}, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if _, err := generateCitations(t.Context(), ws); strings.Contains(test.want, noPlace) && (err == nil || !strings.Contains(err.Error(), noPlace)) {
				t.Errorf("generating without a place for the table: %v", err)
			}
		})
	}
}

// The focus limits only former names: missing citations are known only of the whole repository.
func TestCitationsInFocus(t *testing.T) {
	files := numberedDocuments()
	edit{"topology/also.go", "Also is", "WORD, Also is"}.in(t, files)
	edit{"patch/patch.go", "small", "WORD"}.in(t, files)
	edit{"patch/mutants.yaml", "U_ING-2", "none"}.in(t, files)
	ws := withTableOfToday(t, files)
	if err := ws.Focus("topology"); err != nil {
		t.Fatal(err)
	}
	faults, err := citationFaults(t.Context(), ws, []exemption{{"patch/patch.go", "none such", "out of focus"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) != 2 || !strings.HasPrefix(faults[0], "docs/upstream.md:4: ") || !strings.HasPrefix(faults[1], "topology/also.go:3: ") {
		t.Errorf("in focus:\n%v", faults)
	}
}

func TestCitationsIsAStep(t *testing.T) {
	steps, err := Select([]string{"citations"})
	if err != nil {
		t.Fatal(err)
	}
	if err := steps[0].Run(t.Context(), repository(t, numberedDocuments()), nil); err == nil || !strings.Contains(err.Error(), "run make generate") {
		t.Errorf("an old table: %v", err)
	}
}

func TestNoRequirements(t *testing.T) {
	files := numberedDocuments()
	delete(files, requirementsFile)
	ws := repository(t, files)
	if err := checkCitations(t.Context(), ws, nil); err != nil {
		t.Error(err)
	}
	if written, err := generateCitations(t.Context(), ws); written || err != nil {
		t.Errorf("written: %t, %v", written, err)
	}
}

func TestLinkedFilesCiteNothing(t *testing.T) {
	ws := withTableOfToday(t, numberedDocuments())
	if err := os.WriteFile(ws.Path("outside.txt"), []byte(former), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("outside.txt", ws.Path("inside.md")); err != nil {
		t.Fatal(err)
	}
	if faults, err := citationFaults(t.Context(), ws, nil); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}
