// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/report"
)

func TestRun(t *testing.T) {
	all := []string{"SNO-ETC-001", "SNO-ETC-002", "SNO-ING-001", "SNO-ING-002", "SNO-ING-003"}
	for name, test := range map[string]struct {
		fake      *fake
		args      []string
		requested []string
		code      int
		message   string
	}{
		"default tiers": {fake: &fake{}, requested: []string{"SNO-ETC-001", "SNO-ING-001", "SNO-ING-002", "SNO-ING-003"}},
		"disruptive":    {fake: &fake{}, args: []string{"--disruptive"}, requested: all},
		"tiers":         {fake: &fake{}, args: []string{"--tiers", "scheduled,disruptive"}, requested: []string{"SNO-ETC-002", "SNO-ING-003"}},
		"modules":       {fake: &fake{}, args: []string{"--modules", "etcdguard"}, requested: []string{"SNO-ETC-001"}},
		"checks":        {fake: &fake{}, args: []string{"--checks", "SNO-ING-001,SNO-ETC-001"}, requested: []string{"SNO-ETC-001", "SNO-ING-001"}},
		"failure": {
			fake: &fake{ends: ended("SNO-ING-001", report.Failed)}, args: []string{"--checks", "SNO-ING-001"}, requested: []string{"SNO-ING-001"},
			code: exitFailed, message: "want 1, got 2",
		},
		"inconclusive": {
			fake: &fake{ends: ended("SNO-ING-001", report.Inconclusive)}, args: []string{"--checks", "SNO-ING-001"}, requested: []string{"SNO-ING-001"},
			code: exitFailed, message: "controls with a wrong result",
		},
		"nothing applies": {
			fake: &fake{ends: ended("SNO-ING-001", report.NotApplicable)}, args: []string{"--checks", "SNO-ING-001"}, requested: []string{"SNO-ING-001"},
			code: exitFailed, message: report.ErrNothingChecked.Error(),
		},
		"not connected":  {fake: &fake{err: errors.New("no route")}, code: exitBadInput, message: "no route"},
		"deletion fails": {fake: &fake{closing: errors.New("a namespace is stuck")}, requested: all[:1], args: []string{"--modules", "etcdguard"}, code: exitFailed, message: "stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, progress := test.fake.run(t, nil, append([]string{"run"}, test.args...)...)
			slices.Sort(test.fake.requested)
			if diff := cmp.Diff(test.requested, test.fake.requested); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
			if code != test.code || out != "" || !strings.Contains(progress, test.message) || test.fake.closed != 1 {
				t.Errorf("exit code %d, want %d; closed %d times; standard output %q; standard error:\n%s", code, test.code, test.fake.closed, out, progress)
			}
		})
	}
}

func TestScreen(t *testing.T) {
	f := &fake{ends: map[string]report.Status{"SNO-ETC-002": report.Failed}}
	_, _, progress := f.run(t, nil, "run", "--checks", "SNO-ETC-002", "--tiers", "disruptive")
	golden(t, filepath.Join("testdata", "screen.txt"), []byte(progress))
}

func TestOutputFiles(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "report")
	single := filepath.Join(filepath.Dir(folder), "only.json")
	code, _, _ := (&fake{}).run(t, nil, "run", "-o", folder, "-o", single)
	if code != 0 {
		t.Fatal(code)
	}
	for _, name := range folderFiles {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s was not written: %v", name, err)
		}
	}
	for _, file := range []string{single, filepath.Join(folder, "report.yaml")} {
		reports, err := report.ReadFiles(file)
		if err != nil || len(reports) != 1 {
			t.Fatal(reports, err)
		}
		if sum, tool := len(reports[0].Results), reports[0].Tool; sum != len(someChecks()) || tool != "0123abc" {
			t.Errorf("the report has %d results by tool %q, want one for each of the %d checks", sum, tool, len(someChecks()))
		}
	}
}

func TestWaivers(t *testing.T) {
	for expires, want := range map[string]int{"2026-11-21": 0, "2026-11-20": exitFailed} {
		file := filepath.Join(t.TempDir(), "waivers.yaml")
		if err := os.WriteFile(file, []byte("- {id: SNO-ING-001, why: known, expires: \""+expires+"\"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &fake{ends: ended("SNO-ING-001", report.Failed)}
		if code, _, progress := f.run(t, nil, "run", "--waivers", file); code != want {
			t.Errorf("expires %s: exit code %d, want %d\n%s", expires, code, want, progress)
		}
	}
}

func TestInterruptionClosesTheRunner(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	f := &fake{hang: true}
	done := make(chan int)
	go func() {
		code, _, _ := f.runContext(ctx, nil, "run")
		done <- code
	}()
	interrupt()
	if code := <-done; code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if f.closed != 1 || f.closing != nil {
		t.Errorf("closed %d times, error %v", f.closed, f.closing)
	}
}

func TestCompare(t *testing.T) {
	folder := t.TempDir()
	good, notSuccessful := filepath.Join(folder, "good.yaml"), filepath.Join(folder, "bad.yaml")
	(&fake{}).run(t, nil, "run", "-o", good)
	(&fake{ends: ended("SNO-ING-001", report.Failed)}).run(t, nil, "run", "-o", notSuccessful)
	for _, test := range []struct {
		before, after string
		code          int
	}{{good, good, 0}, {good, notSuccessful, exitFailed}, {notSuccessful, good, 0}, {notSuccessful, notSuccessful, 0}} {
		code, out, _ := (&fake{}).run(t, nil, "compare", test.before, test.after)
		if code != test.code || (out == "no differences\n") != (test.before == test.after) {
			t.Errorf("compare %s %s: exit code %d, want %d\n%s", filepath.Base(test.before), filepath.Base(test.after), code, test.code, out)
		}
	}
}
