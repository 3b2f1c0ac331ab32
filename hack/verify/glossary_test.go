// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGlossary checks the examples of each term of the repository's glossary.
func TestGlossary(t *testing.T) {
	data, err := os.ReadFile("../glossary.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := parseGlossary(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Terms) == 0 {
		t.Error("no terms")
	}
	for _, fault := range g.faults() {
		t.Error(fault)
	}
	for _, term := range g.Terms {
		t.Run(term.Name, func(t *testing.T) {
			term.exampleFaults(t.Errorf)
		})
	}
}

const fob = `since: 0123456789abcdef0123456789abcdef01234567
terms:
- {term: fob, patterns: [fob off, 'fob(?:s|bed) off'], write: refuse, finds: [fob off, fobbed off], accepts: [fobs]}
`

func TestGlossaryFaults(t *testing.T) {
	const incomplete = "an entry of its allow list needs a path and a reason: "
	tests := map[string]struct {
		old, new string
		want     []string
		err      string
	}{
		"nothing wrong": {},
		"short hash":    {"since: 0123456789", "since: ", nil, ""},
		"listed twice": {
			"- {", "- {term: fob, patterns: [fib], write: refuse, finds: [fib], accepts: [fob]}\n- {",
			[]string{"is listed twice"}, "",
		},
		"no name": {"term: fob, ", "", []string{"has no term"}, ""},
		"no patterns": {"patterns: [fob off, 'fob(?:s|bed) off'], ", "", []string{
			`does not find "fob off"`, `does not find "fobbed off"`, "has no patterns",
		}, ""},
		"nothing to write": {"write: refuse, ", "", []string{"has no write"}, ""},
		"no accepts":       {", accepts: [fobs]", "", []string{"has no accepts"}, ""},
		"no finds": {"finds: [fob off, fobbed off], ", "", []string{
			"has no finds", `no example under finds has pattern "fob off"`, `no example under finds has pattern "fob(?:s|bed) off"`,
		}, ""},
		"pattern not shown":  {"fob off, fobbed off", "fob off", []string{`no example under finds has pattern "fob(?:s|bed) off"`}, ""},
		"wrong example":      {"fobbed off]", "fobbed off, fobbing off]", []string{`does not find "fobbing off"`}, ""},
		"wrong exception":    {"[fobs]", "[fobs, FobOff]", []string{`pattern "fob off" must accept "FobOff"`}, ""},
		"unknown scope":      {"write:", "in: names, write:", []string{`has the scope "names"; the only scope is "text"`}, ""},
		"no reason":          {"[fobs]", "[fobs], allow: [{path: a.go}]", []string{incomplete + `path "a.go", why ""`}, ""},
		"no path":            {"[fobs]", "[fobs], allow: [{why: w}]", []string{incomplete + `path "", why "w"`}, ""},
		"bad path":           {"[fobs]", "[fobs], allow: [{path: '[', why: w}]", []string{`path "[": syntax error in pattern`}, ""},
		"bad line":           {"[fobs]", "[fobs], allow: [{path: a.go, line: (, why: w}]", nil, `hack/glossary.yaml: term "fob": error parsing regexp`},
		"bad pattern":        {"patterns: [fob off,", "patterns: [fob (,", nil, `hack/glossary.yaml: term "fob": error parsing regexp`},
		"no literal":         {"patterns: [fob off,", "patterns: ['(?:fob|fib) off',", nil, `hack/glossary.yaml: term "fob": pattern "(?:fob|fib) off"`},
		"capitals":           {"patterns: [fob off,", "patterns: [fob Off,", nil, `hack/glossary.yaml: term "fob": pattern "fob Off" has capitals`},
		"unknown field":      {"write:", "writes:", nil, "hack/glossary.yaml: "},
		"not a YAML mapping": {"terms:", "terms", nil, "hack/glossary.yaml: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.old != "" && strings.Count(fob, test.old) != 1 {
				t.Fatalf("%q must occur once", test.old)
			}
			g, err := parseGlossary([]byte(strings.Replace(fob, test.old, test.new, min(len(test.old), 1))))
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want Findings
			if name == "short hash" {
				want = Findings{`hack/glossary.yaml: since is "abcdef0123456789abcdef01234567", must be the full hash of a commit`}
			}
			for _, text := range test.want {
				term := "fob"
				if name == "no name" {
					term = ""
				}
				want = append(want, `hack/glossary.yaml: term "`+term+`": `+text)
			}
			if diff := cmp.Diff(want, g.faults()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindTerms(t *testing.T) {
	tests := map[string]struct {
		file, text string
		want       []string
	}{
		"comment":                    {"a.go", "package a\n\n// It fobs off.\n", []string{"3 fobs off"}},
		"over two lines of comment":  {"a.go", "package a\n\n// It fobs\n\t// off.\n", []string{"3 fobs off"}},
		"block comment":              {"a.go", "/*\n * It fobs\n * off.\n */\npackage a\n", []string{"2 fobs off"}},
		"over two lines of prose":    {"a.md", "It fobs  \n> off.\n", []string{"1 fobs off"}},
		"over two paragraphs":        {"a.md", "It fobs\n\noff.\n", nil},
		"over comment paragraphs":    {"a.go", "// It fobs\n//\n// off.\npackage a\n", nil},
		"string":                     {"a.go", "package a\n\nconst a = \"Fob off\"\n", []string{"3 fob off"}},
		"raw string":                 {"a.go", "package a\n\nconst a = `\nfob off`\n", []string{"4 fob off"}},
		"after a line break's mark":  {"a.go", "package a\n\nconst a = \"a\\nfob\\toff\"\n", []string{"3 fob off"}},
		"identifier":                 {"a.go", "package a\n\nvar fobOff int\n", []string{"3 fob off"}},
		"exported identifier":        {"a.go", "package a\n\nvar ErrFobOff error\n", []string{"3 fob off"}},
		"after an initialism":        {"a.go", "package a\n\nvar APIFobOff error\n", []string{"3 fob off"}},
		"with underscores":           {"a.go", "package a\n\nvar is_fob_off error\n", []string{"3 fob off"}},
		"part of a word":             {"a.go", "package a\n\n// bfob off, fob offer\nvar fobOffer, Bfoboff int\n", nil},
		"digits belong to words":     {"a.go", "package a\n\n// 1fob off, fob off1\n", nil},
		"twice in a line":            {"a.yaml", "a: fob off, fobbed off\n", []string{"1 fob off", "1 fobbed off"}},
		"the same twice in a line":   {"a.yaml", "a: fob off, fob off\n", []string{"1 fob off"}},
		"lines in order":             {"a.yml", "a: fobs off\nb: nib\nc: fob off\n", []string{"1 fobs off", "2 nib", "3 fob off"}},
		"end of the file":            {"a.md", "fob off", []string{"1 fob off"}},
		"in text only: comment":      {"a.go", "// nib\npackage a\n", []string{"1 nib"}},
		"in text only: string":       {"a.go", "package a\n\nvar a = \"nib\"\n", []string{"3 nib"}},
		"in text only: identifier":   {"a.go", "package a\n\nvar nib int\n", nil},
		"in text only: YAML key":     {"a.yaml", "nib: 1\n", []string{"1 nib"}},
		"another kind of file":       {"a.txt", "fob off\n", nil},
		"the glossary itself":        {"hack/glossary.yaml", "fob off\n", nil},
		"Windows line ends":          {"a.md", "a\r\nIt fobs\r\noff\r\n", []string{"2 fobs off"}},
		"letters of other languages": {"a.md", "\u00e4\u00f6\u00fc fob off \u00e9\n", []string{"1 fob off"}},
		"Go that does not parse":     {"a.go", "fob off ' nib", []string{"1 fob off"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := parseGlossary([]byte(fob + "- {term: nib, in: text, patterns: [nib], write: end}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, line := range test.want {
				number, text, _ := strings.Cut(line, " ")
				write := map[bool]string{false: "refuse", true: "end"}[text == "nib"]
				want = append(want, test.file+":"+number+`: "`+text+`": write `+write)
			}
			var got []string
			for _, h := range g.find(test.file, []byte(test.text), strings.Split(test.text, "\n")) {
				got = append(got, h.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllow(t *testing.T) {
	all := func(path, line string) []string {
		return []string{"b/a.md:1", "b/c/a.md:1", "b/c/a.md:2",
			`hack/glossary.yaml: term "fob": nothing in ` + path + ` needs the allow entry (line "` + line + `") any more; delete it`}
	}
	tests := map[string]struct {
		allow string
		want  []string
	}{
		"nothing":               {"", []string{"b/a.md:1", "b/c/a.md:1", "b/c/a.md:2"}},
		"a file":                {"{path: b/c/a.md, why: w}", []string{"b/a.md:1"}},
		"a pattern":             {"{path: 'b/*.md', why: w}", []string{"b/c/a.md:1", "b/c/a.md:2"}},
		"a folder":              {"{path: b/..., why: w}", nil},
		"a folder below":        {"{path: b/c/..., why: w}", []string{"b/a.md:1"}},
		"a line":                {"{path: b/..., line: '^Not', why: w}", []string{"b/a.md:1", "b/c/a.md:1"}},
		"two entries":           {"{path: b/a.md, why: w}, {path: b/c/a.md, line: second, why: w}", []string{"b/c/a.md:1"}},
		"the same line twice":   {"{path: b/a.md, why: w}, {path: 'b/*', why: w}", []string{"b/c/a.md:1", "b/c/a.md:2"}},
		"a file without a term": {"{path: a.md, why: w}", all("a.md", "")},
		"a prefix of a folder":  {"{path: b/c/a/..., why: w}", all("b/c/a/...", "")},
		"a line without a term": {"{path: b/..., line: third, why: w}", all("b/...", "third")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := parseGlossary([]byte(strings.Replace(fob, "[fobs]", "[fobs], allow: ["+test.allow+"]", 1)))
			if err != nil {
				t.Fatal(err)
			}
			if faults := g.faults(); faults != nil {
				t.Fatal(faults)
			}
			var got []string
			for _, file := range []source{
				{"a.md", []string{"nothing"}}, {"b/a.md", []string{"FOB OFF"}}, {"b/c/a.md", []string{"fob off", "Not to fob off: a second line"}},
			} {
				for _, h := range g.find(file.name, []byte(strings.Join(file.lines, "\n")), file.lines) {
					position, _, _ := strings.Cut(h.String(), ": ")
					got = append(got, position)
				}
			}
			got = append(got, g.unused()...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("hits and unused entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNormalizedLines compares the line of each word with that in the original.
func TestNormalizedLines(t *testing.T) {
	const text = "\n\nl3\n\n\n// l6 _ L6\n//\n\t// l8L8\n\n\nl11\n"
	n := normalize([]byte(text))
	if want := "\n\nl3 \n\nl6 l6 \nl8 l8 \n\nl11 "; want != string(n.text) {
		t.Errorf("got %q, want %q", n.text, want)
	}
	for i := range n.text {
		if n.text[i] == 'l' {
			number := strings.FieldsFunc(string(n.text[i+1:]), func(r rune) bool { return r < '0' || r > '9' })[0]
			if want := strings.Count(text[:strings.Index(text, "l"+number)], "\n"); n.line(i) != want {
				t.Errorf("offset %d is in line %d, want %d", i, n.line(i), want)
			}
		}
	}
}

func TestSummarize(t *testing.T) {
	got := summarize([]hit{{term: "c"}, {term: "b"}, {term: "a"}, {term: "b"}})
	if want := "b 2, a 1, c 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWordsInFocus checks parts of the repository: an unused entry can be reported only where all files are read.
func TestWordsInFocus(t *testing.T) {
	files := sample()
	files["hack/go.mod"] = "module github.com/solonode/sno/hack\n\ngo 1.25.0\n"
	files["hack/glossary.yaml"] = strings.Replace(fob, "[fobs]", "[FobOff], allow: [{path: a.md, why: w}]", 1)
	files["patch/README.md"] = "fob off\n"
	const (
		hit     = "patch/README.md:1: \"fob off\": write refuse\n1 in all: fob 1"
		example = `hack/glossary.yaml: term "fob": pattern "fob off" must accept "FobOff"`
		unused  = `hack/glossary.yaml: term "fob": nothing in a.md needs the allow entry (line "") any more; delete it`
	)
	ws := repository(t, files)
	for module, want := range map[string]string{"": example + "\n" + unused + "\n" + hit, "hack": example, "patch": hit, "topology": ""} {
		if err := ws.Focus(strings.Fields(module)...); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := checkWords(t.Context(), ws, io.Discard); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("module %q (-want +got):\n%s", module, diff)
		}
	}
}
