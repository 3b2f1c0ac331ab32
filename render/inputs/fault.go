// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Causes of a Fault.
var (
	ErrSyntax       = errors.New("not readable")
	ErrUnknownKind  = errors.New("unknown kind")
	ErrUnknownField = errors.New("unknown field")
	ErrInvalid      = errors.New("invalid value")
	ErrMissing      = errors.New("missing")
	ErrDuplicate    = errors.New("duplicate")
	ErrConflict     = errors.New("two inputs set one object differently")
	ErrOverlap      = errors.New("overlapping networks")
	ErrCertificate  = errors.New("unusable certificate")
	ErrUnsupported  = errors.New("not supported without an operator")
	ErrIgnored      = errors.New("without effect")
)

// Fault is one problem of the input. It is an error that wraps Kind.
type Fault struct {
	// File is the path in the folder, or empty. Line begins at 1 and is 0 without a line.
	File string
	Line int
	// Object is kind and name, such as "APIServer cluster" or "Secret openshift-config/etcd-client".
	Object  string
	Field   string
	Problem string
	Advice  string
	Kind    error
}

// Error returns one line: place, object, field, problem, advice.
func (f Fault) Error() string {
	var parts []string
	switch {
	case f.File != "" && f.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", f.File, f.Line))
	case f.File != "":
		parts = append(parts, f.File)
	}
	if f.Object != "" {
		parts = append(parts, f.Object)
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	text := strings.Join(append(parts, f.Problem), ": ")
	if f.Advice != "" {
		text += "; " + f.Advice
	}
	return text
}

func (f Fault) Unwrap() error { return f.Kind }

// Faults are all problems of an input.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults, for errors.Is.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i := range f {
		errs[i] = f[i]
	}
	return errs
}

func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if (a.File == "") != (b.File == "") {
			return strings.Compare(b.File, a.File)
		}
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Problem, b.Problem))
	})
	return f
}
