// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/report"
)

func TestGolden(t *testing.T) {
	everyEnding := map[string]report.Status{
		"SNO-ING-002": report.NotApplicable, "SNO-ING-003": report.Failed, "SNO-ETC-001": report.Inconclusive, "SNO-ETC-002": report.Skipped,
	}
	for name, args := range map[string][]string{
		"info.json":         {"info"},
		"images.json":       {"images"},
		"tests.json":        {"list"},
		"tests.jsonl":       {"list", "tests", "-o", "jsonl"},
		"suites.json":       {"list", "suites"},
		"components.json":   {"list", "components"},
		"results.jsonl":     {"run-test", "-o", "jsonl", "-n", onePod},
		"skipped.jsonl":     {"run-test", "-o", "jsonl", "-n", spread},
		"failed.jsonl":      {"run-test", "-o", "jsonl", "-n", rolls},
		"inconclusive.json": {"run-test", guard},
		"explain.txt":       {"explain", "SNO-ETC-001"},
		"disruptive.txt":    {"explain", "SNO-ETC-002"},
		"catalogue.txt":     {"catalogue"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, _ := (&fake{ends: everyEnding}).run(t, nil, args...)
			golden(t, filepath.Join("testdata", name), []byte(out))
		})
	}
}

// each decodes an output of one JSON object a line, and nothing else: origin skips other lines of a list, and rejects
// them after results.
func each[T any](t *testing.T, out string) (all []T) {
	t.Helper()
	for line := range strings.Lines(out) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, one)
	}
	return all
}

func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"all":                     {nil, []string{onePod, spread, rolls, guard, drains}},
		"single node":             {[]string{"--topology=SingleReplica"}, []string{onePod, rolls, guard, drains}},
		"two nodes":               {[]string{"--topology=DualReplica"}, []string{spread, rolls, drains}},
		"unknown topology":        {[]string{"--topology=Sideways"}, []string{rolls, drains}},
		"flags without an effect": {[]string{"--platform=none", "--fact", "a=b", "--optional-capability=Console", "--feature-gate=X"}, []string{onePod, spread, rolls, guard, drains}},
		"suite":                   {[]string{"--suite", "sno/etcdguard"}, []string{guard, drains}},
		"suite and single node":   {[]string{"--suite", "sno/static", "--topology=SingleReplica"}, []string{onePod, guard}},
		"component":               {[]string{"--component", "sno:external:conformance", "--suite", "sno/disruptive"}, []string{drains}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, _ := (&fake{}).run(t, nil, append([]string{"list", "tests", "-o", "jsonl"}, test.args...)...)
			var got []string
			for _, s := range each[spec](t, out) {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || code != 0 {
				t.Errorf("exit code %d, tests (-want +got):\n%s", code, diff)
			}
		})
	}
}

func TestRunTest(t *testing.T) {
	const unknownName = "[sno-conformance] [SNO-ING-999] It does not exist"
	broken := errors.New("the API server is unavailable")
	for name, test := range map[string]struct {
		fake *fake
		args []string
		in   string
		want map[string]string
		code int
	}{
		"passes":                {fake: &fake{}, args: []string{"-n", onePod, "-n", rolls}, want: map[string]string{onePod: passed, rolls: passed}},
		"as an argument":        {fake: &fake{}, args: []string{onePod}, want: map[string]string{onePod: passed}},
		"from a pipe":           {fake: &fake{}, args: []string{"-n", onePod}, in: rolls + "\n\n" + guard + "\n", want: map[string]string{onePod: passed, rolls: passed, guard: passed}},
		"twice":                 {fake: &fake{}, args: []string{"-n", onePod, "-n", onePod}, in: onePod + "\n", want: map[string]string{onePod: passed}},
		"blocking fails":        {fake: &fake{ends: ended("SNO-ING-001", report.Failed)}, args: []string{onePod}, want: map[string]string{onePod: failed}, code: 1},
		"informing fails":       {fake: &fake{ends: ended("SNO-ETC-001", report.Failed)}, args: []string{guard}, want: map[string]string{guard: failed}},
		"inconclusive":          {fake: &fake{ends: ended("SNO-ING-001", report.Inconclusive)}, args: []string{onePod}, want: map[string]string{onePod: failed}, code: 1},
		"not applicable":        {fake: &fake{ends: ended("SNO-ING-001", report.NotApplicable)}, args: []string{onePod}, want: map[string]string{onePod: skipped}},
		"unknown status":        {fake: &fake{ends: ended("SNO-ING-001", "great")}, args: []string{onePod}, want: map[string]string{onePod: failed}, code: 1},
		"no result":             {fake: &fake{errs: map[string]error{"SNO-ING-001": broken}}, args: []string{onePod}, want: map[string]string{onePod: failed}, code: 1},
		"runner does not start": {fake: &fake{err: broken}, args: []string{"-n", onePod, "-n", drains}, want: map[string]string{onePod: failed, drains: failed}, code: 1},
		"no cluster":            {fake: &fake{}, args: []string{"--kubeconfig", "none", "-n", onePod, "-n", guard}, want: map[string]string{onePod: failed, guard: failed}, code: 1},
		"unknown":               {fake: &fake{}, args: []string{"-n", unknownName, "-n", unknownName}, want: map[string]string{unknownName: failed}, code: 1},
		"unknown and known":     {fake: &fake{}, args: []string{"-n", unknownName, "-n", onePod}, want: map[string]string{unknownName: failed, onePod: passed}, code: 1},
		"id is no name":         {fake: &fake{}, args: []string{"-n", "SNO-ING-001"}, want: map[string]string{"SNO-ING-001": failed}, code: 1},
		"deletion fails":        {fake: &fake{closing: errors.New("a namespace is stuck")}, args: []string{onePod}, want: map[string]string{onePod: passed}, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, _ := test.fake.run(t, strings.NewReader(test.in), append([]string{"run-test", "-o", "jsonl"}, test.args...)...)
			got := map[string]string{}
			for _, r := range each[testResult](t, out) {
				if got[r.Name] != "" {
					t.Errorf("%s has two results, which origin rejects", r.Name)
				}
				if got[r.Name] = r.Result; r.Result == failed && r.Error == "" {
					t.Errorf("%s failed without an error", r.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || code != test.code {
				t.Errorf("exit code %d, want %d; results (-want +got):\n%s", code, test.code, diff)
			}
		})
	}
}

func ended(id string, status report.Status) map[string]report.Status {
	return map[string]report.Status{id: status}
}

func TestRunTestRunsNothingElse(t *testing.T) {
	f := &fake{}
	if code, _, _ := f.run(t, nil, "run-test", "-n", rolls, "-n", guard); code != 0 {
		t.Fatal(code)
	}
	slices.Sort(f.requested)
	if diff := cmp.Diff([]string{"SNO-ETC-001", "SNO-ING-003"}, f.requested); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if got := f.selection.Tiers; len(got) != 2 {
		t.Errorf("tiers %v, want static and scheduled", got)
	}
}

func TestArtifacts(t *testing.T) {
	for _, variable := range []string{"EXTENSION_ARTIFACT_DIR", "EXTENSION_ARTIFACTS_DIR"} {
		t.Setenv("EXTENSION_ARTIFACT_DIR", "")
		t.Setenv(variable, t.TempDir())
		f := &fake{ends: map[string]report.Status{"SNO-ING-003": report.Failed, "SNO-ING-001": report.Failed, "SNO-ETC-002": report.Inconclusive}}
		f.run(t, nil, "run-test", "-n", rolls, "-n", onePod, "-n", drains)
		if diff := cmp.Diff([]string{"SNO-ING-001", "SNO-ETC-002"}, f.collected); diff != "" {
			t.Errorf("%s: collected (-want +got):\n%s", variable, diff)
		}
	}
}

func TestRunSuite(t *testing.T) {
	folder := t.TempDir()
	junit, html := filepath.Join(folder, "junit.xml"), filepath.Join(folder, "page.html")
	code, out, _ := (&fake{}).run(t, nil, "run-suite", "sno/static", "-c", "10", "-j", junit, "--html-path", html)
	var results []testResult
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != 0 || len(results) != 3 {
		t.Fatalf("exit code %d, %d results, %v", code, len(results), err)
	}
	for _, file := range []string{junit, html} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s was not written: %v", filepath.Base(file), err)
		}
	}
}

// Nothing begins with arguments or files that are wrong.
func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no test named":       {"run-test"},
		"output of run-test":  {"run-test", "-o", "names", onePod},
		"output of list":      {"list", "-o", "yaml"},
		"suite":               {"run-suite", "sno/nothing"},
		"suite of list":       {"list", "--suite", "openshift/conformance"},
		"component":           {"info", "--component", "openshift:payload:other"},
		"command":             {"unknown"},
		"flag":                {"run", "--fast"},
		"tier":                {"run", "--tiers", "unknown"},
		"module":              {"run", "--modules", "ingres"},
		"check":               {"run", "--checks", "SNO-ING-999"},
		"nothing selected":    {"run", "--tiers", "disruptive", "--modules", "ingress"},
		"tiers twice":         {"run", "--tiers", "static", "--disruptive"},
		"cluster":             {"run", "--kubeconfig", "none"},
		"waivers":             {"run", "--waivers", filepath.Join("testdata", "nowhere.yaml")},
		"explain":             {"explain", "SNO-ING-999"},
		"compare":             {"compare", "nowhere.yaml", "nowhere.yaml"},
		"output below a file": {"run", "-o", filepath.Join(file, "report")},
		"recover":             {"recover"},
		"its route":           {"recover", "-o", folder, "--route", "canary"},
		"a route's name":      {"recover", "-o", folder, "--route", "a/"},
		"a long route":        {"recover", "-o", folder, "--route", "a/b/c"},
		"its cluster":         {"recover", "-o", folder, "--kubeconfig", "none"},
		"its tier":            {"recover", "-o", folder, "--tiers", "unknown"},
		"its outage":          {"recover", "-o", folder, "--outage-command", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			code, out, problem := f.run(t, strings.NewReader(""), args...)
			if code != exitBadInput || problem == "" || out != "" || len(f.requested) > 0 {
				t.Errorf("exit code %d, standard output %q, standard error %q, requested %v", code, out, problem, f.requested)
			}
		})
	}
}
