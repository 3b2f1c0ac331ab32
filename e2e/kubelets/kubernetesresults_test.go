// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

// The outcomes of tests. skipped means that the test skipped itself.
const passed, failed, skipped = "passed", "failed", "skipped"

// result is the result of one test.
type result struct {
	outcome string
	// text is the reason of a failure or of a skip.
	text string
	// image is the missing image that a failed test needs, if one is known.
	image string
	// again means that the test failed first, and passed alone.
	again bool
}

// results are the results of tests, by their codenames.
type results map[string]result

// readResults returns the results of tests from Ginkgo's JSON report. A test without a result has the zero one, and a
// failed setup or end of the suite is one more result.
func readResults(text []byte, tests []kubeTest) (results, error) {
	all := results{}
	for _, test := range tests {
		all[test.Codename] = result{}
	}
	var reports []types.Report
	err := json.Unmarshal(text, &reports)
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if _, wanted := all[spec.FullText()]; wanted {
				all[spec.FullText()] = newResult(spec)
			} else if spec.LeafNodeType != types.NodeTypeIt && spec.Failed() {
				all[spec.LeafNodeType.String()] = newResult(spec)
			}
		}
	}
	return all, err
}

func newResult(spec types.SpecReport) result {
	switch spec.State {
	case types.SpecStatePassed:
		return result{outcome: passed}
	case types.SpecStateSkipped:
		return result{outcome: skipped, text: spec.Failure.Message}
	default:
		text := spec.State.String() + ": " + spec.Failure.Message
		return result{outcome: failed, text: text, image: missingImage(text + spec.CapturedGinkgoWriterOutput + spec.CapturedStdOutErr)}
	}
}

// pullPattern matches events of kubelets, which the report of a failed test has.
var pullPattern = regexp.MustCompile(`(?:Failed to pull|Back-off pulling) image \\*"([^"\\]+)`)

// missingImage returns the name of the image, without its registry and tag, that could not be pulled in a test, or
// nothing. Some tests need an image that cannot be pulled anywhere.
func missingImage(text string) string {
	for _, match := range pullPattern.FindAllStringSubmatch(text, -1) {
		name, tag, _ := strings.Cut(match[1][strings.LastIndex(match[1], "/")+1:], ":")
		if !strings.HasPrefix(match[1], "invalid.") && tag != "nonexistent" {
			return name
		}
	}
	return ""
}

// names returns the codenames with an outcome, sorted.
func (r results) names(outcome string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(name string) bool { return r[name].outcome != outcome })
}

// String has the numbers, and the tests that passed in the second attempt only.
func (r results) String() string {
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", len(r.names(passed)), len(r.names(failed)), len(r.names(skipped)))
	for _, name := range r.names(passed) {
		if r[name].again {
			text += "\npassed in the second attempt: " + name
		}
	}
	return text
}

// differences returns the tests with another outcome than those that are compared have; compared with nothing, each must
// have passed. Those in mustFail must have failed.
func (r results) differences(with results, mustFail []string) []string {
	var differ []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(r)), maps.Keys(with))))) {
		want := passed
		if slices.Contains(mustFail, name) {
			want = failed
		} else if with != nil {
			want = with[name].outcome
		}
		if r[name].outcome != want {
			differ = append(differ, fmt.Sprintf("%s: %q, want %q: %.300s %s", name, r[name].outcome, want, strings.Join(strings.Fields(r[name].text), " "), r[name].image))
		}
	}
	return differ
}

func kubeTests(names ...string) []kubeTest {
	var all []kubeTest
	for _, name := range names {
		all = append(all, kubeTest{Codename: name})
	}
	return all
}

func TestReadResults(t *testing.T) {
	spec := func(text string, state types.SpecState, message, output string) types.SpecReport {
		return types.SpecReport{
			ContainerHierarchyTexts: []string{"[sig-a]"}, LeafNodeText: text, LeafNodeType: types.NodeTypeIt, State: state,
			Failure: types.Failure{Message: message}, CapturedGinkgoWriterOutput: output,
		}
	}
	const events = `event for x: {kubelet n} Failed: Failed to pull image "invalid.registry.k8s.io/invalid/alpine:3.1": no such host
event for x: {kubelet n} BackOff: Back-off pulling image "registry.k8s.io/e2e-test-images/busybox:1.37.0-1": ErrImagePull`
	setup := types.SpecReport{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStatePassed}
	specs := types.SpecReports{
		spec("passes", types.SpecStatePassed, "", ""), spec("fails", types.SpecStateFailed, "wrong", events), spec("panics", types.SpecStatePanicked, "nil", ""),
		spec("skips itself", types.SpecStateSkipped, "needs Windows", ""), spec("ends early", types.SpecStateInterrupted, "", ""),
		spec("not selected", types.SpecStateFailed, "", ""), setup,
	}
	read := func(names ...string) (results, error) {
		text, err := json.Marshal([]types.Report{{SpecReports: specs}})
		if err != nil {
			t.Fatal(err)
		}
		return readResults(text, kubeTests(names...))
	}
	got, err := read("[sig-a] passes", "[sig-a] fails", "[sig-a] panics", "[sig-a] skips itself", "[sig-a] ends early")
	want := results{
		"[sig-a] passes": {outcome: passed}, "[sig-a] fails": {outcome: failed, text: "failed: wrong", image: "busybox"},
		"[sig-a] panics": {outcome: failed, text: "panicked: nil"}, "[sig-a] skips itself": {outcome: skipped, text: "needs Windows"},
		"[sig-a] ends early": {outcome: failed, text: "interrupted: "},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := read("[sig-a] absent"); err != nil || len(got.differences(nil, nil)) != 1 {
		t.Errorf("a test without a result: %v, %v", got, err)
	}
	specs[len(specs)-1].State, specs[len(specs)-1].Failure.Message = types.SpecStateFailed, "no node"
	if got, err := read("[sig-a] passes"); err != nil || len(got.differences(nil, nil)) != 1 || !strings.Contains(got.differences(nil, nil)[0], "no node") {
		t.Errorf("a failed setup of the suite: %v, %v", got, err)
	}
	if _, err := readResults([]byte("[{"), nil); err == nil {
		t.Error("a truncated report is read")
	}
}

func TestDifferences(t *testing.T) {
	pass, fail, skip := result{outcome: passed}, result{outcome: failed}, result{outcome: skipped}
	for name, test := range map[string]struct {
		results, with results
		want          string
	}{
		"all pass":                           {results{"a": pass}, nil, ""},
		"fails":                              {results{"a": fail}, nil, "a"},
		"skips itself":                       {results{"a": skip}, nil, "a"},
		"passes in a second attempt":         {results{"a": {outcome: passed, again: true}}, results{"a": pass}, ""},
		"fails with the modules only":        {results{"a": pass}, results{"a": fail}, "a"},
		"fails without the modules only":     {results{"a": fail}, results{"a": pass}, "a"},
		"fails in both":                      {results{"a": fail}, results{"a": fail}, ""},
		"absent without the modules":         {results{"a": pass}, results{"a": pass, "b": pass}, "b"},
		"absent with the modules":            {results{"a": pass, "b": pass}, results{"a": pass}, "b"},
		"needs the modules":                  {results{"n": fail}, results{"n": pass}, ""},
		"needs the modules, off only":        {results{"n": fail}, nil, ""},
		"needs the modules and skips itself": {results{"n": skip}, results{"n": pass}, "n"},
		"does not need the modules":          {results{"n": pass}, results{"n": pass}, "n"},
	} {
		var got []string
		for _, difference := range test.results.differences(test.with, []string{"n"}) {
			first, _, _ := strings.Cut(difference, ":")
			got = append(got, first)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
