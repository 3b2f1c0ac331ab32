// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// Lines returns one line for each exported declaration of the packages, exported field and method, sorted, in the style
// of the files in Go's own api folder. Names of parameters are no part of it.
func Lines(packages []*types.Package) []string {
	var lines []string
	for _, p := range packages {
		w := writer{pkg: p, prefix: "pkg " + short(p.Path()) + ", "}
		for _, name := range p.Scope().Names() {
			if object := p.Scope().Lookup(name); object.Exported() {
				w.object(object)
			}
		}
		lines = append(lines, w.lines...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func short(path string) string { return strings.TrimPrefix(path, workspace.ModulePrefix) }

type writer struct {
	pkg    *types.Package
	prefix string
	lines  []string
}

func (w *writer) add(format string, args ...any) {
	w.lines = append(w.lines, w.prefix+fmt.Sprintf(format, args...))
}

func (w *writer) object(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		w.add("const %s %s = %s", o.Name(), w.typeOf(o.Type()), o.Val().ExactString())
	case *types.Var:
		w.add("var %s %s", o.Name(), w.typeOf(o.Type()))
	case *types.Func:
		w.add("func %s%s", o.Name(), w.signature(o.Signature()))
	case *types.TypeName:
		w.typeName(o)
	}
}

func (w *writer) typeName(o *types.TypeName) {
	if o.IsAlias() {
		w.add("type %s = %s", o.Name(), w.typeOf(types.Unalias(o.Type())))
		return
	}
	named, is := o.Type().(*types.Named)
	if !is {
		return
	}
	name := o.Name() + w.parameters(named.TypeParams())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		w.add("type %s struct", name)
		for field := range t.Fields() {
			switch {
			case field.Exported() && field.Embedded():
				w.add("type %s struct, embedded %s", o.Name(), w.typeOf(field.Type()))
			case field.Exported():
				w.add("type %s struct, %s %s", o.Name(), field.Name(), w.typeOf(field.Type()))
			}
		}
	case *types.Interface:
		w.add("type %s interface", name)
		for method := range t.Methods() {
			if method.Exported() {
				w.add("type %s interface, %s%s", o.Name(), method.Name(), w.signature(method.Signature()))
			} else {
				w.add("type %s interface, unexported methods", o.Name())
			}
		}
	default:
		w.add("type %s %s", name, w.typeOf(t))
	}
	if !types.IsInterface(named) {
		w.methods(named)
	}
}

// methods lists the methods of a type, and those of embedded types that other packages cannot name.
func (w *writer) methods(named *types.Named) {
	set := types.NewMethodSet(types.NewPointer(named))
	byValue := types.NewMethodSet(named)
	for selection := range set.Methods() {
		method, is := selection.Obj().(*types.Func)
		if !is || !method.Exported() || len(selection.Index()) > 1 && isExported(method.Signature().Recv().Type()) {
			continue
		}
		receiver := "*" + named.Obj().Name()
		if byValue.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = named.Obj().Name()
		}
		w.add("method (%s) %s%s", receiver, method.Name(), w.signature(method.Signature()))
	}
}

func isExported(t types.Type) bool {
	if pointer, is := t.(*types.Pointer); is {
		t = pointer.Elem()
	}
	named, is := t.(*types.Named)
	return !is || named.Obj().Exported()
}

func (w *writer) parameters(list *types.TypeParamList) string {
	var all []string
	for parameter := range list.TypeParams() {
		all = append(all, parameter.Obj().Name()+" "+w.typeOf(parameter.Constraint()))
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (w *writer) signature(s *types.Signature) string {
	return w.parameters(s.TypeParams()) +
		strings.TrimPrefix(w.typeOf(types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())), "func")
}

func (w *writer) typeOf(t types.Type) string {
	return types.TypeString(nameless(t), types.RelativeTo(w.pkg))
}

// nameless returns the type without the names of parameters.
func nameless(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, namelessTuple(t.Params()), namelessTuple(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(nameless(t.Elem()))
	case *types.Slice:
		return types.NewSlice(nameless(t.Elem()))
	case *types.Array:
		return types.NewArray(nameless(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(nameless(t.Key()), nameless(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), nameless(t.Elem()))
	}
	return t
}

func namelessTuple(tuple *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range tuple.Variables() {
		all = append(all, types.NewParam(v.Pos(), v.Pkg(), "", nameless(v.Type())))
	}
	return types.NewTuple(all...)
}
