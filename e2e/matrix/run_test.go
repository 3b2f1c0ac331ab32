// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/report"
)

// behaviour is the environment variable that makes the test binary a child.
const behaviour = "MATRIX_TEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviour); how != "" {
		os.Exit(child(how, os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

func child(how, scenario, folder string) int {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	_, _ = fmt.Fprintln(os.Stdout, "this is", scenario)
	leave := func(name string, status report.Status) {
		file, err := os.Create(filepath.Join(folder, ReportFile))
		if err != nil {
			panic(err)
		}
		defer func() { _ = file.Close() }()
		if err := report.WriteJSON(file, sample(name, status, "from the child")); err != nil {
			panic(err)
		}
	}
	switch how {
	case "passes":
		leave(scenario, report.Passed)
	case "passes last":
		// It ends after the other one has.
		<-ended(folder, "second")
		leave(scenario, report.Passed)
	case "is another":
		leave("another", report.Passed)
	case "writes half":
		if err := os.WriteFile(filepath.Join(folder, ReportFile), []byte(`{"kind":`), 0o600); err != nil {
			panic(err)
		}
	case "crashes":
		panic("something is wrong")
	case "hangs":
		<-terminated
		_ = os.WriteFile(filepath.Join(folder, "cleaned"), nil, 0o600)
		return 1
	case "waits for stdin":
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = os.WriteFile(filepath.Join(folder, "cleaned"), nil, 0o600)
	}
	return 0
}

func ended(folder, other string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range time.Tick(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(folder), other, ReportFile)); err == nil {
				return
			}
		}
	}()
	return done
}

func sample(scenario string, status report.Status, reason string) report.Report {
	r := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Scenario: scenario, Provider: "fake", Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Results: []report.Result{{
			ID: "SNO-ING-001", Title: "One", Module: "ingress", Level: "core", Tier: "static", Requirement: "R-EXAMPLE-1: one", Status: status, Reason: reason,
			Evidence: []report.Evidence{{Object: "Node a", Field: "b", Want: "c", Got: "c", Held: status != report.Failed}},
			Controls: []report.Control{{Name: "x", Want: "fail", Detected: true}, {Name: "y", Want: "pass", Detected: true}},
		}},
	}
	r.Count()
	return r
}

func run(t *testing.T, parallel int, limit time.Duration, pairs ...string) (Run, []report.Report, string, error) {
	t.Helper()
	how := map[string]string{}
	r := Run{Parallel: parallel, Limit: limit, Folder: t.TempDir()}
	for i := 0; i < len(pairs); i += 2 {
		r.Scenarios = append(r.Scenarios, pairs[i])
		how[pairs[i]] = pairs[i+1]
	}
	r.Command = func(scenario, folder string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], scenario, folder)
		cmd.Env = append(os.Environ(), behaviour+"="+how[scenario])
		return cmd
	}
	r.Lost = sample
	var output bytes.Buffer
	r.Progress = &output
	reports, err := r.All(t.Context())
	return r, reports, output.String(), err
}

func outcome(reports []report.Report) []string {
	var lines []string
	for _, r := range reports {
		lines = append(lines, fmt.Sprintf("%s %s: %s", r.Scenario, r.Results[0].Status, r.Results[0].Reason))
	}
	return lines
}

func TestReportsComeInOrder(t *testing.T) {
	_, reports, output, err := run(t, 2, time.Minute, "first", "passes last", "second", "passes")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"first passed: from the child", "second passed: from the child"}
	if diff := cmp.Diff(want, outcome(reports)); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"first   started", "second  started", "  1 passed   0 failed", "1/2", "2/2"} {
		if !strings.Contains(output, line) {
			t.Errorf("the progress has no %q:\n%s", line, output)
		}
	}
}

// A fault of a child does not affect the others.
func TestChildThatFails(t *testing.T) {
	r, reports, output, err := run(t, 1, time.Minute,
		"a", "crashes", "b", "passes", "c", "is another", "d", "writes half", "e", "passes")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a failed: " + ErrNoReport.Error(), "b passed: from the child", "c failed: " + ErrNoReport.Error(),
		"d failed: " + ErrNoReport.Error(), "e passed: from the child",
	}
	if diff := cmp.Diff(want, outcome(reports)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(output, "exit status 2") || !strings.Contains(output, "something is wrong") {
		t.Errorf("the progress lacks the reason:\n%s", output)
	}
	if log, err := os.ReadFile(filepath.Join(r.Folder, "a", LogFile)); err != nil || !strings.HasPrefix(string(log), "this is a\n") {
		t.Errorf("the log is %q, %v", log, err)
	}
}

func TestChildThatHangs(t *testing.T) {
	r, reports, _, err := run(t, 2, time.Second, "a", "hangs", "b", "passes")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a failed: " + ErrTooLong.Error(), "b passed: from the child"}, outcome(reports)); diff != "" {
		t.Error(diff)
	}
	cleaned(t, r, "a")
}

// cleaned checks that a child was terminated and has cleaned up.
func cleaned(t *testing.T, r Run, scenario string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(r.Folder, scenario, "cleaned")); err != nil {
		t.Errorf("%s has not cleaned up: %v", scenario, err)
	}
}

func TestInterruption(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	folder := make(chan string, 1)
	go func() {
		// When the second one is done, the first one is running.
		<-ended(filepath.Join(<-folder, "a"), "b")
		interrupt()
	}()
	how := map[string]string{"a": "hangs", "b": "passes", "c": "hangs", "d": "passes"}
	r := Run{
		Scenarios: []string{"a", "b", "c", "d"}, Parallel: 2, Limit: time.Minute, Folder: t.TempDir(), Progress: io.Discard,
		Command: func(scenario, folder string) *exec.Cmd {
			cmd := exec.Command(os.Args[0], scenario, folder)
			cmd.Env = append(os.Environ(), behaviour+"="+how[scenario])
			return cmd
		},
		Lost: sample,
	}
	folder <- r.Folder
	reports, err := r.All(ctx)
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("the error is %v", err)
	}
	lost := " inconclusive: " + ErrInterrupted.Error()
	if diff := cmp.Diff([]string{"a" + lost, "b passed: from the child", "c" + lost, "d" + lost}, outcome(reports)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(r.Folder, "d", LogFile)); err == nil {
		t.Error("a child was started after the interruption")
	}
}

// A report of an earlier run in the same folder does not count.
func TestOldReport(t *testing.T) {
	r := Run{Scenarios: []string{"a"}, Limit: time.Minute, Folder: t.TempDir(), Progress: io.Discard}
	how := "passes"
	r.Command = func(scenario, folder string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], scenario, folder)
		cmd.Env = append(os.Environ(), behaviour+"="+how)
		return cmd
	}
	r.Lost = sample
	for _, test := range []struct{ how, want string }{{"passes", "a passed: from the child"}, {"crashes", "a failed: " + ErrNoReport.Error()}} {
		how = test.how
		reports, err := r.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{test.want}, outcome(reports)); diff != "" {
			t.Error(diff)
		}
	}
}
