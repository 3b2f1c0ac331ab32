// SPDX-License-Identifier: Apache-2.0

package document

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type thing struct {
	Name  string
	Flag  bool             `json:"flag"`
	Rooms []room           `json:"rooms"`
	Data  map[string][]int `json:"data"`
}

type room struct {
	Size int64 `json:"size"`
}

const faulty = `# Every field is wrong.
name: 7
rooms:
- size: large
- {size: 3, sise: 4}
- 5
flag: maybe
speed: &a [*a, {}]
data: {a.b: [1, two]}
flag: true
`

// Every unknown or duplicate field and every wrong type is reported at once, with its line, and the rest is decoded.
func TestDecode(t *testing.T) {
	text := "kind: List\nitems:\n- a: 1\n- 2\n---\n" + faulty[:len(faulty)-len("speed: &a [*a, {}]\ndata: {a.b: [1, two]}\nflag: true\n")] +
		"speed: 1\ndata: {a.b: [1, two]}\nspeed: 2\n"
	documents, faults := Parse("f.yaml", []byte(text))
	if len(documents) != 2 || string(documents[0].JSON) != `{"a":1}` || documents[0].Line("a") != 3 {
		t.Fatalf("%d documents: %v", len(documents), faults)
	}
	d := documents[1]
	d.Object = "Thing x"
	into := thing{}
	faults = append(faults, d.Faults(d.Decode(&into))...)
	faults.Sort()
	want := "f.yaml:4: Invalid value: not an object; an item is a mapping with apiVersion and kind\n" +
		"f.yaml:7: Thing x: name: Forbidden: unknown field; check its spelling and its place\n" +
		"f.yaml:9: Thing x: rooms[0].size: Invalid value: write a number\n" +
		"f.yaml:10: Thing x: rooms[1].sise: Forbidden: unknown field; check its spelling and its place\n" +
		"f.yaml:11: Thing x: rooms[2]: Invalid value: write a mapping; write fields as NAME: VALUE\n" +
		"f.yaml:12: Thing x: flag: Invalid value: write true or false\n" +
		"f.yaml:13: Thing x: speed: Forbidden: unknown field; check its spelling and its place\n" +
		"f.yaml:14: Thing x: data.a.b[1]: Invalid value: write a number\n" +
		"f.yaml:15: speed: Duplicate value: the field is set twice; remove one of them"
	if diff := cmp.Diff(want, faults.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(thing{Rooms: []room{{}, {Size: 3}, {}}, Data: map[string][]int{"a.b": {1, 0}}}, into); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "f: Required value: the file is empty",
		"# only\n":                         "f: Required value: the file is empty",
		"a: 1\n---\nb: 2\n":                "f:3: Too many: there is a second document; remove it",
		"x: 1\n---\na: 1\n...\nb: 2\n":     "f:5: Invalid value: more after the end of the document; separate documents by a line of ---",
		"a: 1\n...\nb: 2\n":                "f:3: Invalid value: more after the end of the document; separate documents by a line of ---",
		"a: [\nb: 2\n":                     "f:3: Invalid value: did not find expected ',' or ']'; fix the YAML",
		"- a\n":                            "f:1: Invalid value: not a mapping; write fields as NAME: VALUE",
		"---\n# x\n---\na: {b: 1, b: 2}\n": "f:4: a.b: Duplicate value: the field is set twice; remove one of them",
		faulty:                             "",
	} {
		d, faults := One("f", []byte(text))
		if want == "" { // an alias that contains itself
			if len(faults) == 0 {
				t.Errorf("%s: no fault", text)
			}
			continue
		}
		if d != nil || faults.Error() != want {
			t.Errorf("%q: got %v, want %s", text, faults, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	d, faults := One("f.json", []byte("{\n\t\"a\": {\"x.y\": [1,\n\t\t{\"b\": \"\", \"c\": [], \"d\": {}}]},\n\t\"e\": null}"))
	if faults != nil {
		t.Fatal(faults)
	}
	for path, line := range map[string]int{"": 1, "a": 2, "a.x.y": 2, "a.x.y[1].b": 3, "a.x.y[7]": 2, "a.x.y[1].z": 3, "e": 4, "z": 1} {
		if got := d.Line(path); got != line {
			t.Errorf("%s is on line %d, want %d", path, got, line)
		}
	}
	for path, empty := range map[string]bool{"a": false, "a.x.y[1].b": true, "a.x.y[1].c": true, "a.x.y[1].d": false, "e": true, "z": true, "a.x.y[0]": false} {
		if got := d.Empty(path); got != empty {
			t.Errorf("%s is empty: %t", path, got)
		}
	}
	if dotted, _ := One("f", []byte("k:\n  b: 1\nk.b: 2\n")); dotted.Line("k.b") != 3 || dotted.Line("k.c") != 1 {
		t.Errorf("k.b is on line %d, k.c below line %d", dotted.Line("k.b"), dotted.Line("k.c"))
	}
	if !d.NoFields("a.x.y[1].d") || d.NoFields("a.x.y[1]") || d.NoFields("e.d") {
		t.Error("only a.x.y[1].d is {}")
	}
	if !d.Has("e") || d.Has("a.z") || d.Place("a") != "f.json:2" {
		t.Error(d.Place("a"))
	}
	warning := d.Faults(field.ErrorList{{Type: Ignored, Field: "a", Detail: "without effect"}, field.Invalid(Path("a.%s", "q"), Omitted, "hidden")})
	if warning.Error() != "f.json:2: a: without effect\nf.json:2: a.q: Invalid value: hidden" {
		t.Error(warning)
	}
}
