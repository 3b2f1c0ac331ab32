// SPDX-License-Identifier: Apache-2.0

package api

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package sub

import "io"

const A = 1 << 3
const B Kind = "b"

var C, c = map[string]io.Reader{}, 0

func F(a, b int, rest ...string) (n int, err error) { return }
func G[T any](f func(name T) (other T)) {}
func unexported() {}

type Kind string

type Alias = io.Writer

type S struct {
	io.Reader
	inner
	Field  func(name string)
	hidden int
}

type inner struct{}

func (inner) Promoted() {}
func (*S) ByPointer()   {}
func (S) ByValue() S    { return S{} }
func (S) unexported()   {}

type I interface {
	Method(name string) error
	unexported()
}

type List[T any] []T

func (l List[T]) Len() int { return 0 }
`

func TestLines(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "a.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{Importer: importer.ForCompiler(files, "source", nil)}).Check("github.com/solonode/sno/m/sub", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `const A untyped int = 8
const B Kind = "b"
func F(int, int, ...string) (int, error)
func G[T any](func(T) T)
method (*S) ByPointer()
method (List) Len() int
method (S) ByValue() S
method (S) Promoted()
type Alias = io.Writer
type I interface
type I interface, Method(string) error
type I interface, unexported methods
type Kind string
type List[T any] []T
type S struct
type S struct, Field func(string)
type S struct, embedded io.Reader
var C map[string]io.Reader`
	got := strings.ReplaceAll(strings.Join(Lines([]*types.Package{p}), "\n"), "pkg m/sub, ", "")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGolden(t *testing.T) {
	golden := Parse("pkg m, func Kept()\npkg m, func Gone()\n+ pkg m, func New()\n+ pkg m, func Dropped()\n- pkg m, func Back()\n- pkg m, func Old()\n")
	updated := golden.Update([]string{"pkg m, func Kept()", "pkg m, func New()", "pkg m, func Newer()", "pkg m, func Back()"})
	want := "pkg m, func Back()\n- pkg m, func Gone()\npkg m, func Kept()\n+ pkg m, func New()\n+ pkg m, func Newer()\n- pkg m, func Old()\n"
	if diff := cmp.Diff(want, updated.String()); diff != "" {
		t.Errorf("updated (-want +got):\n%s", diff)
	}
	changes := []string{"+ pkg m, func Newer()", "- pkg m, func Gone()", "no longer + pkg m, func Dropped()", "pkg m, func Back()"}
	if diff := cmp.Diff(changes, updated.Changes(golden)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("pkg m, func Back()\npkg m, func Kept()\npkg m, func New()\npkg m, func Newer()\n", updated.Release().String()); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	release := Parse("pkg m, func Kept()\npkg m, func Newer()\npkg m, func Other()\npkg m, func Gone()\n")
	if diff := cmp.Diff([]string{"pkg m, func Newer()", "pkg m, func Other()"}, updated.Lacks(release)); diff != "" {
		t.Errorf("lacks (-want +got):\n%s", diff)
	}
}

func TestUnmentioned(t *testing.T) {
	for line, name := range map[string]string{
		"func F(int)":             "sub.F",
		"const C untyped int = 1": "sub.C",
		"var V error":             "sub.V",
		"type T struct":           "sub.T",
		"type T[K any] struct":    "sub.T",
		"type T struct, Field func(struct{ A }, int)": "sub.T.Field",
		"type T struct, embedded a/b.List[a/b.C]":     "sub.T.List",
		"type T struct, embedded io.Reader":           "sub.T.Reader",
		"type T struct, embedded *a/b.Reader":         "sub.T.Reader",
		"type I interface, M(a/b.C) error":            "sub.I.M",
		"type I interface, unexported methods":        "sub.I.unexported",
		"method (*T) M(struct, X)":                    "sub.T.M",
	} {
		golden := Parse("- pkg m/sub, " + line + "\npkg m/sub, func Kept()\n+ pkg m/sub, func New()\n")
		for _, text := range []string{"", name + "s", "other" + name, name + ".Member", "m/sub"} {
			if diff := cmp.Diff([]string{name}, golden.Unmentioned(text)); diff != "" {
				t.Errorf("%s, not mentioned by %q (-want +got):\n%s", line, text, diff)
			}
		}
		owner := strings.Join(strings.SplitN(name, ".", 3)[:2], ".")
		for _, text := range []string{name, "`" + name + "`, gone", "- " + name + ".", "gone: " + owner + "\n"} {
			if got := golden.Unmentioned(text); len(got) > 0 {
				t.Errorf("%s: %q does not mention %v", line, text, got)
			}
		}
	}
}
