// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ignored is the type of a warning: the field is set, and has no effect.
const Ignored field.ErrorType = "FieldValueIgnored"

// Omitted is the value of a field that may have a secret: it is not printed.
var Omitted = field.OmitValueType{}

// Fault is a field error and its place.
type Fault struct {
	// File is empty for what is missing, or not in a file. Line begins at 1 and is 0 without a line.
	File string
	Line int
	// Object is kind and name, such as "APIServer cluster"; empty in a file with one document.
	Object string
	// Problem may have an empty Field, for what is wrong with the whole object.
	Problem *field.Error
}

// Error returns one line: place, object, field, problem and what to do.
func (f Fault) Error() string {
	place := f.File
	if f.File != "" && f.Line > 0 {
		place = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	text := f.Problem.Detail
	if f.Problem.Type != Ignored {
		text = f.Problem.ErrorBody()
	}
	parts := []string{place, f.Object, f.Problem.Field, text}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Unwrap returns the field error.
func (f Fault) Unwrap() error { return f.Problem }

// Faults are all faults of an input.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts by place; those without a file are the last.
func (f Faults) Sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if (a.File == "") != (b.File == "") {
			return strings.Compare(b.File, a.File)
		}
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Problem.Field, b.Problem.Field), cmp.Compare(a.Problem.Detail, b.Problem.Detail))
	})
}

// Path is the path of a field that is given as text, such as "spec.serviceNetwork[0]".
func Path(format string, args ...any) *field.Path { return field.NewPath(fmt.Sprintf(format, args...)) }

// Whole is the problem of an object as a whole, or of a file.
func Whole(kind field.ErrorType, detail string) *field.Error {
	return &field.Error{Type: kind, BadValue: Omitted, Detail: detail}
}
