// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func tests(names ...string) []Test {
	var all []Test
	for _, name := range names {
		all = append(all, Test{Codename: name})
	}
	return all
}

// TestSkipsFitTheTests is the check of skips.yaml with the tests of the pinned version.
func TestSkipsFitTheTests(t *testing.T) {
	all, err := All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	skips, err := Skips()
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckSkips(all, skips); err != nil {
		t.Error(err)
	}
	run, skipped := Split(all, skips, Kinds()...)
	if len(run) == 0 || len(skipped) == 0 || len(run)+len(skipped) != len(all) {
		t.Errorf("of %d tests %d run and %d are skipped", len(all), len(run), len(skipped))
	}
}

func TestCheckSkips(t *testing.T) {
	all := tests("a [Conformance]", "b [Conformance]", "c")
	good := Skip{Kind: OneNode, Reason: "It requires two nodes.", Tests: []string{"a [Conformance]"}}
	for _, test := range []struct {
		name string
		skip Skip
		want string
	}{
		{"good", Skip{Kind: Image, Image: "busybox", Tests: []string{"c"}}, ""},
		{"no such test", Skip{Kind: Disturbs, Reason: "It disturbs.", Tests: []string{"b"}}, `no conformance test "b"`},
		{"twice", Skip{Kind: Disturbs, Reason: "It disturbs.", Tests: []string{"a [Conformance]"}}, "is skipped already"},
		{"twice in one", Skip{Kind: Disturbs, Reason: "It disturbs.", Tests: []string{"c", "c"}}, "is skipped already"},
		{"unknown kind", Skip{Kind: "flaky", Reason: "It fails.", Tests: []string{"c"}}, `kind "flaky"`},
		{"no reason", Skip{Kind: Lacks, Tests: []string{"c"}}, "needs an image"},
		{"no image", Skip{Kind: Image, Reason: "It needs one.", Tests: []string{"c"}}, "needs an image"},
		{"no test", Skip{Kind: Lacks, Reason: "It lacks."}, "names no test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := CheckSkips(all, []Skip{good, test.skip})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.Is(err, ErrSkips) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	if _, err := parseSkips([]byte("- kind: image\n  picture: busybox\n")); !errors.Is(err, ErrSkips) {
		t.Errorf("an unknown field: %v", err)
	}
	for _, text := range []string{"[]", "- testname: a\n", "- codename: a\n- codename: a\n", "{"} {
		if _, err := parseTests([]byte(text)); !errors.Is(err, ErrTests) {
			t.Errorf("%q: %v", text, err)
		}
	}
	got, err := parseTests([]byte("- testname: A\n  codename: '[sig-a] a\n    [Conformance]'\n  file: a.go\n"))
	if diff := cmp.Diff([]Test{{Name: "A", Codename: "[sig-a] a [Conformance]", File: "a.go"}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSplit(t *testing.T) {
	skips := []Skip{{Kind: OneNode, Tests: []string{"a"}}, {Kind: Image, Tests: []string{"b"}}}
	run, skipped := Split(tests("a", "b", "c"), skips, Image)
	if diff := cmp.Diff([][]Test{tests("a", "c"), tests("b")}, [][]Test{run, skipped}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFocus(t *testing.T) {
	pattern := regexp.MustCompile(focus(tests("[sig-a] a (b) [Conformance]", "[sig-a] c")))
	for text, want := range map[string]bool{
		"Kubernetes e2e suite [sig-a] a (b) [Conformance]":       true,
		"Kubernetes e2e suite [sig-a] c":                         true,
		"Kubernetes e2e suite [sig-a] c and more":                false,
		"Kubernetes e2e suite [sig-b] [sig-a] c":                 false,
		"Kubernetes e2e suite [sig-a] a b [Conformance]":         false,
		"Kubernetes e2e suite [sig-a] a (b) [Conformance] again": false,
	} {
		if pattern.MatchString(text) != want {
			t.Errorf("%q: selected %t, want %t", text, !want, want)
		}
	}
}

const junit = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
 <testsuite name="Kubernetes e2e suite">
  <testcase name="[It] [sig-a] passes" status="passed" time="1.5"></testcase>
  <testcase name="[It] [sig-a] fails" status="failed" time="2"><failure type="failed">a.go:1
  wrong</failure><system-err>I1127 At 2026-11-27 - event for x: {kubelet n} Failed: Failed to pull image "invalid.registry.k8s.io/invalid/alpine:3.1": no such host
  event for x: {kubelet n} BackOff: Back-off pulling image "registry.k8s.io/e2e-test-images/busybox:1.37.0-1": ErrImagePull</system-err></testcase>
  <testcase name="[It] [sig-a] panics" status="panicked" time="2"><error type="panicked">nil</error></testcase>
  <testcase name="[It] [sig-a] skips itself" status="skipped" time="0"><skipped message="skipped - needs Windows"></skipped></testcase>
  <testcase name="[It] [sig-a] ends early" status="interrupted" time="0"></testcase>
  <testcase name="[It] [sig-a] not selected" status="failed" time="0"><failure></failure></testcase>
  <testcase name="[SynchronizedBeforeSuite]" status="passed" time="3"></testcase>
 </testsuite>
</testsuites>`

func TestReadReport(t *testing.T) {
	all := tests("[sig-a] passes", "[sig-a] fails", "[sig-a] panics", "[sig-a] skips itself", "[sig-a] ends early")
	got, err := ReadReport(strings.NewReader(junit), all)
	if err != nil {
		t.Fatal(err)
	}
	want := Results{
		"[sig-a] passes":       {Outcome: Passed, Time: 1500 * time.Millisecond},
		"[sig-a] fails":        {Outcome: Failed, Time: 2 * time.Second, Text: "a.go:1\n  wrong", Image: "busybox"},
		"[sig-a] panics":       {Outcome: Failed, Time: 2 * time.Second, Text: "nil"},
		"[sig-a] skips itself": {Outcome: Skipped, Text: "skipped - needs Windows"},
		"[sig-a] ends early":   {Outcome: Failed, Text: "interrupted"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ReadReport(strings.NewReader(junit), append(all, tests("[sig-a] absent")...)); !errors.Is(err, ErrReport) {
		t.Errorf("a test without a result: %v", err)
	}
	broken := strings.Replace(junit, `"[SynchronizedBeforeSuite]" status="passed" time="3">`, `"[SynchronizedBeforeSuite]" status="failed" time="3"><failure>no node</failure>`, 1)
	if _, err := ReadReport(strings.NewReader(broken), all); !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), "no node") {
		t.Errorf("a failed setup of the suite: %v", err)
	}
	if _, err := ReadReport(strings.NewReader(junit[:200]), all); !errors.Is(err, ErrReport) {
		t.Errorf("a truncated report: %v", err)
	}
}

func TestVerdict(t *testing.T) {
	pass, fail, skip := Result{Outcome: Passed}, Result{Outcome: Failed, Text: "a.go:1"}, Result{Outcome: Skipped}
	skips := []Skip{{Kind: NeedsModules, Tests: []string{"n"}}, {Kind: OneNode, Tests: []string{"a", "b"}}}
	for _, test := range []struct {
		name    string
		on, off Results
		differ  []Difference
		bad     bool
	}{
		{"all pass", Results{"a": pass}, Results{"a": {Outcome: Passed, Again: true, Time: time.Hour}}, nil, false},
		{"on only", Results{"a": pass}, nil, nil, false},
		{"off only", nil, Results{"a": fail}, []Difference{{"a", Result{}, fail}}, true},
		{"fails with the modules", Results{"a": fail}, Results{"a": pass}, []Difference{{"a", fail, pass}}, true},
		{"fails without the modules", Results{"a": pass}, Results{"a": fail}, []Difference{{"a", pass, fail}}, true},
		{"fails in both", Results{"a": fail}, Results{"a": fail}, nil, true},
		{"skips itself in both", Results{"a": skip}, Results{"a": skip}, nil, true},
		{"absent in one", Results{"a": pass, "b": pass}, Results{"a": pass}, []Difference{{"b", pass, Result{}}}, true},
		{"needs the modules", Results{"n": pass}, Results{"n": fail}, []Difference{{"n", pass, fail}}, false},
		{"needs the modules, off only", nil, Results{"n": fail}, []Difference{{"n", Result{}, fail}}, false},
		{"needs the modules and fails", Results{"n": fail}, Results{"n": fail}, nil, true},
		{"needs the modules and skips itself", Results{"n": pass}, Results{"n": skip}, []Difference{{"n", pass, skip}}, true},
		{"does not need the modules", Results{"n": pass}, Results{"n": pass}, nil, true},
		{"does not need the modules, off only", nil, Results{"n": pass}, []Difference{{"n", Result{}, pass}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.off != nil {
				if diff := cmp.Diff(test.differ, Compare(test.on, test.off)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if err := Verdict(skips, test.on, test.off); errors.Is(err, ErrTestsFailed) != test.bad {
				t.Error(err)
			}
		})
	}
}

// TestDifferenceOfReports is the negative control of the comparison: two reports that differ in one test.
func TestDifferenceOfReports(t *testing.T) {
	all := tests("[sig-a] passes")
	on, err := ReadReport(strings.NewReader(junit), all)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(junit, `passes" status="passed" time="1.5">`, `passes" status="failed" time="1.5"><failure>no</failure>`, 1)
	off, err := ReadReport(strings.NewReader(other), all)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	Print(&out, []Skip{{Kind: OneNode, Tests: []string{"x", "y"}}}, on, off)
	want := `modules      passed failed skipped again
on                1      0       0     0
off               0      1       0     0
not run:
  one-node      2
  disturbs      0
  lacks         0
  image         0
failed, modules off: [sig-a] passes: no
differs: [sig-a] passes: passed with the modules on, failed with them off
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Verdict(nil, on, off); !errors.Is(err, ErrTestsFailed) {
		t.Error(err)
	}
	known := []Skip{{Kind: NeedsModules, Tests: []string{"[sig-a] passes"}}}
	out.Reset()
	Print(&out, known, on, off)
	Print(&out, known, on, on)
	for _, line := range []string{
		"differs, as it should: [sig-a] passes: passed with the modules on, failed with them off\n",
		"passed with the modules off, remove it from skips.yaml: [sig-a] passes\n",
	} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("want once %q:\n%s", line, out.String())
		}
	}
}

func TestMerge(t *testing.T) {
	r := Results{"a": {Outcome: Failed, Time: time.Second}, "b": {Outcome: Failed, Time: time.Second}, "c": {Outcome: Passed}}
	r.merge(Results{"a": {Outcome: Passed, Time: time.Second}, "b": {Outcome: Failed, Time: time.Second}})
	want := Results{
		"a": {Outcome: Passed, Time: 2 * time.Second, Again: true}, "b": {Outcome: Failed, Time: 2 * time.Second}, "c": {Outcome: Passed},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVerifyImages(t *testing.T) {
	skips := []Skip{{Kind: Image, Image: "busybox", Tests: []string{"a", "b"}}, {Kind: OneNode, Tests: []string{"c"}}}
	if err := VerifyImages(skips, Results{"a": {Outcome: Failed, Image: "busybox"}}); err != nil {
		t.Error(err)
	}
	for name, result := range map[string]Result{
		"passes": {Outcome: Passed}, "fails for another reason": {Outcome: Failed}, "needs another image": {Outcome: Failed, Image: "nginx"},
	} {
		if err := VerifyImages(skips, Results{"b": result}); !errors.Is(err, ErrSkips) {
			t.Errorf("a test that %s: %v", name, err)
		}
	}
}

func TestSortImages(t *testing.T) {
	names := []string{
		"registry.k8s.io/pause:3.10.2", "registry.k8s.io/e2e-test-images/agnhost:2.63.0", "registry.k8s.io/e2e-test-images/busybox:1",
		"gcr.io/k8s-authenticated-test/agnhost:2.6", "registry.k8s.io/e2e-test-images/agnhost:2.55", "invalid.registry.k8s.io/invalid/alpine:3.1",
	}
	got, err := sortImages(names)
	if err != nil {
		t.Fatal(err)
	}
	want := imagesOf{
		agnhost: []string{"registry.k8s.io/e2e-test-images/agnhost:2.55", "registry.k8s.io/e2e-test-images/agnhost:2.63.0"},
		pause:   []string{"registry.k8s.io/pause:3.10.2"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(imagesOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := sortImages(names[2:3]); !errors.Is(err, ErrTests) {
		t.Errorf("no agnhost: %v", err)
	}
}

func TestCounter(t *testing.T) {
	var log, out bytes.Buffer
	start := time.Unix(1000, 0)
	c := &counter{log: &log, out: &out, total: 5, started: start, last: start}
	for i, part := range []string{"Will run 5 specs\n\xe2\x80", "\xa2", "•S", "---\n• [SLOW TEST] [9.9 seconds]\n---\n• [FAI", "LED] [2 seconds]\n", "•", "\nRan 5"} {
		c.count([]byte(part), start.Add(time.Duration(i)*time.Second))
	}
	if diff := cmp.Diff("  4 of 5 tests, 1 failed, 4s\n  5 of 5 tests, 1 failed, 6s\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, err := c.Write([]byte("•")); n != len("•") || err != nil || log.String() != "•" {
		t.Errorf("the log is %q after %d bytes: %v", log.String(), n, err)
	}
}
