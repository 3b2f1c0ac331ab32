// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/assets"
)

//go:embed skips.yaml
var skipsText []byte

// kubeTest is a conformance test of Kubernetes.
type kubeTest struct {
	// Name is the short name, and Codename the full text of the spec.
	Name     string `json:"testname"`
	Codename string `json:"codename"`
}

// The kinds of reasons, in the order of the document. Tests of the last one are not skipped: they pass with the modules
// on, and fail with them off.
var kinds = []struct{ kind, title string }{
	{"one-node", "Differences from a cluster of several nodes"},
	{"disturbs", "Tests that would disturb the modules or other tests on the only node"},
	{"lacks", "Tests that need what these nodes lack"},
	{needsImage, "Tests that need another image"},
	{needsModules, "Not skipped: tests that pass only with the modules on"},
}

const needsImage, needsModules = "image", "needs-modules"

// skip is a reason why tests are skipped, or why they fail with the modules off.
type skip struct {
	Kind string `json:"kind"`
	// Reason is a sentence. It is empty if Image is set.
	Reason string `json:"reason,omitempty"`
	// Image is the name of the image of kind needsImage, without its registry and tag.
	Image string `json:"image,omitempty"`
	// Tests are codenames.
	Tests []string `json:"tests"`
}

type skips []skip

// readTests returns the conformance tests of the Kubernetes version of testcluster/kube, and the skips of this
// repository.
func readTests(ctx context.Context) ([]kubeTest, skips, error) {
	folder, err := assets.SuiteFolder(ctx)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "test", "conformance", "testdata", "conformance.yaml"))
	if err != nil {
		return nil, nil, err
	}
	var all []kubeTest
	var reasons skips
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, nil, err
	}
	return all, reasons, yaml.UnmarshalStrict(skipsText, &reasons)
}

// of returns the codenames of the skips of these kinds.
func (s skips) of(kinds ...string) []string {
	var names []string
	for _, one := range s {
		if slices.Contains(kinds, one.Kind) {
			names = append(names, one.Tests...)
		}
	}
	return names
}

// split returns the tests that run, and those that are skipped because of an image.
func (s skips) split(all []kubeTest) (run, forImages []kubeTest) {
	reasons, images := s.of("one-node", "disturbs", "lacks"), s.of(needsImage)
	for _, test := range all {
		switch {
		case slices.Contains(images, test.Codename):
			forImages = append(forImages, test)
		case !slices.Contains(reasons, test.Codename):
			run = append(run, test)
		}
	}
	return run, forImages
}

// faults returns the skips without a kind or a reason, and those of tests that do not exist or that are in two skips.
func (s skips) faults(all []kubeTest) []string {
	known, skipped := map[string]bool{}, map[string]bool{}
	for _, test := range all {
		known[test.Codename] = true
	}
	var faults []string
	for i, one := range s {
		switch {
		case !slices.ContainsFunc(kinds, func(k struct{ kind, title string }) bool { return k.kind == one.Kind }):
			faults = append(faults, fmt.Sprintf("entry %d has the unknown kind %q", i, one.Kind))
		case (one.Kind == needsImage) != (one.Image != "") || (one.Kind == needsImage) == (one.Reason != ""):
			faults = append(faults, fmt.Sprintf("entry %d needs an image if its kind is %s, otherwise a reason", i, needsImage))
		case len(one.Tests) == 0:
			faults = append(faults, fmt.Sprintf("entry %d names no test", i))
		}
		for _, name := range one.Tests {
			if !known[name] || skipped[name] {
				faults = append(faults, fmt.Sprintf("entry %d: %q is no conformance test, or is in another entry", i, name))
			}
			skipped[name] = true
		}
	}
	return faults
}

// list returns the list of the document. It has the short names, because codenames are longer than a line.
func (s skips) list(all []kubeTest) string {
	names := map[string]string{}
	for _, test := range all {
		names[test.Codename] = test.Name
	}
	run, _ := s.split(all)
	head, body := fmt.Sprintf("\nOf %d tests %d run.\n\n| reason | tests skipped |\n|---|---|\n", len(all), len(run)), ""
	for _, k := range kinds {
		tests := s.of(k.kind)
		if k.kind != needsModules {
			head += fmt.Sprintf("| %s | %d |\n", k.title, len(tests))
		}
		if len(tests) > 0 {
			body += "\n### " + k.title + "\n"
		}
		for _, one := range s {
			if one.Kind != k.kind {
				continue
			}
			if one.Image != "" {
				one.Reason = "`" + one.Image + "`:"
			}
			body += "\n" + one.Reason + "\n\n"
			for _, name := range one.Tests {
				body += "- " + names[name] + "\n"
			}
		}
	}
	return head + body + "\n"
}

var update = flag.Bool("update", false, "update the list of skips in docs/kubernetes-conformance.md")

// The document has the current list, and the skips fit the tests of this version.
func TestSkips(t *testing.T) {
	all, reasons, err := readTests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range reasons.faults(all) {
		t.Error(fault)
	}
	file := filepath.Join("..", "..", "docs", "kubernetes-conformance.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- skips: begin -->\n", "<!-- skips: end -->"
	before, rest, found := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		t.Fatalf("%s needs the lines %q and %q", file, begin, end)
	}
	want := slices.Concat(before, []byte(begin), []byte(reasons.list(all)), []byte(end), after)
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("go test ./kubelets -run TestSkips -update updates it (-want +got):\n%s", diff)
	}
}

func TestFaultsOfSkips(t *testing.T) {
	all := []kubeTest{{Codename: "a"}, {Codename: "c"}}
	good := skip{Kind: "one-node", Reason: "It requires two nodes.", Tests: []string{"a"}}
	for name, test := range map[string]struct {
		skip skip
		want string
	}{
		"good":         {skip{Kind: needsImage, Image: "busybox", Tests: []string{"c"}}, ""},
		"no such test": {skip{Kind: "disturbs", Reason: "It disturbs.", Tests: []string{"b"}}, "no conformance test"},
		"twice":        {skip{Kind: "disturbs", Reason: "It disturbs.", Tests: []string{"a"}}, "in another entry"},
		"twice in one": {skip{Kind: "disturbs", Reason: "It disturbs.", Tests: []string{"c", "c"}}, "in another entry"},
		"unknown kind": {skip{Kind: "flaky", Reason: "It fails.", Tests: []string{"c"}}, `kind "flaky"`},
		"no reason":    {skip{Kind: "lacks", Tests: []string{"c"}}, "needs an image"},
		"no image":     {skip{Kind: needsImage, Reason: "It needs one.", Tests: []string{"c"}}, "needs an image"},
		"no test":      {skip{Kind: "lacks", Reason: "It lacks."}, "names no test"},
	} {
		got := skips{good, test.skip}.faults(all)
		if (len(got) == 0) != (test.want == "") || !strings.Contains(strings.Join(got, "\n"), test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
