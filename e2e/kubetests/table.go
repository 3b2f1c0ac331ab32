// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrTestsFailed is returned when a selected test did not pass, or differs.
var ErrTestsFailed = errors.New("the tests failed")

// Print prints the results: numbers, what failed, and what differs. On or off is nil if the tests ran in the other mode
// only.
func Print(out io.Writer, skips []Skip, on, off Results) {
	row := func(name string, r Results) {
		if r != nil {
			fmt.Fprintf(out, "%-12s %6d %6d %7d %5d\n", name, len(r.Names(Passed)), len(r.Names(Failed)), len(r.Names(Skipped)), len(r.again()))
		}
	}
	fmt.Fprintf(out, "%-12s %6s %6s %7s %5s\n", "modules", "passed", "failed", "skipped", "again")
	row("on", on)
	row("off", off)
	fmt.Fprintln(out, "not run:")
	for _, kind := range Kinds() {
		fmt.Fprintf(out, "  %-10s %4d\n", kind, count(skips, kind))
	}
	for _, r := range []struct {
		mode    string
		results Results
	}{{"on", on}, {"off", off}} {
		for _, outcome := range []Outcome{Failed, Skipped} {
			for _, name := range r.results.Names(outcome) {
				fmt.Fprintf(out, "%s, modules %s: %s: %s\n", outcome, r.mode, name, summary(r.results[name]))
			}
		}
		for _, name := range r.results.again() {
			fmt.Fprintf(out, "passed in the second attempt, modules %s: %s\n", r.mode, name)
		}
	}
	if on != nil && off != nil {
		for _, d := range Compare(on, off) {
			known := ""
			if needsModules(skips, d.Codename) && d.expected() {
				known = ", as it should"
			}
			fmt.Fprintf(out, "differs%s: %s: %s with the modules on, %s with them off\n", known, d.Codename, d.On.Outcome, d.Off.Outcome)
		}
	}
	for _, name := range unneeded(skips, off) {
		fmt.Fprintf(out, "passed with the modules off, remove it from skips.yaml: %s\n", name)
	}
}

// Verdict returns an error if a selected test did not pass with the modules on, or has another outcome with them off,
// except for those that need the modules: these must fail then. If on is nil, all others must pass with the modules
// off.
func Verdict(skips []Skip, on, off Results) error {
	bad, differences := len(on.Names(Failed))+len(on.Names(Skipped)), len(unneeded(skips, off))
	switch {
	case on == nil:
		known := func(name string) bool { return needsModules(skips, name) }
		bad = len(slices.DeleteFunc(off.Names(Failed), known)) + len(off.Names(Skipped))
	case off != nil:
		known := func(d Difference) bool { return needsModules(skips, d.Codename) && d.expected() }
		differences += len(slices.DeleteFunc(Compare(on, off), known))
	}
	if bad+differences > 0 {
		return fmt.Errorf("%w: %d did not pass, %d differ", ErrTestsFailed, bad, differences)
	}
	return nil
}

func (d Difference) expected() bool { return d.On.Outcome == Passed && d.Off.Outcome == Failed }

func needsModules(skips []Skip, name string) bool {
	return slices.ContainsFunc(skips, func(s Skip) bool { return s.Kind == NeedsModules && slices.Contains(s.Tests, name) })
}

// unneeded returns the tests that need the modules by the list, and did not fail without them.
func unneeded(skips []Skip, off Results) []string {
	return slices.DeleteFunc(slices.Concat(off.Names(Passed), off.Names(Skipped)), func(name string) bool { return !needsModules(skips, name) })
}

// VerifyImages returns an error for each test that is skipped because of an image that it did not need.
func VerifyImages(skips []Skip, results Results) error {
	var errs []error
	for _, skip := range skips {
		for _, name := range skip.Tests {
			r, ran := results[name]
			if skip.Kind == Image && ran && r.Image != skip.Image {
				errs = append(errs, fmt.Errorf("%w: %q should need the image %s: it %s, image %q", ErrSkips, name, skip.Image, r.Outcome, r.Image))
			}
		}
	}
	return errors.Join(errs...)
}

// again returns the tests that passed in the second attempt only, sorted.
func (r Results) again() []string {
	return slices.DeleteFunc(r.Names(Passed), func(name string) bool { return !r[name].Again })
}

func summary(r Result) string {
	if r.Image != "" {
		return "it needs the image " + r.Image + ": add it to skips.yaml"
	}
	const most = 300
	text := strings.Join(strings.Fields(r.Text), " ")
	return text[:min(len(text), most)]
}

// count returns the number of tests that are skipped for reasons of a kind.
func count(skips []Skip, kind Kind) int {
	tests := 0
	for _, skip := range skips {
		if skip.Kind == kind {
			tests += len(skip.Tests)
		}
	}
	return tests
}
