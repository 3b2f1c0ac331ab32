// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// replicas is a small module: its test detects a wrong sum and not a wrong difference.
var replicas = map[string]string{
	"go.work":         "go 1.26.0\n\nuse ./replicas\n",
	"check.sh":        "go -C replicas test -count=1 -run TestSum . || { echo wrong sum; exit 3; }\n",
	"replicas/go.mod": "module example.com/replicas\n\ngo 1.26.0\n",
	"replicas/replicas.go": `package replicas

func sum(a, b int) int { return a + b }

func difference(a, b int) int { return a - b }
`,
	"replicas/replicas_test.go": `package replicas

import "testing"

func TestSum(t *testing.T) {
	if sum(2, 1) != 3 {
		t.Error("wrong sum")
	}
	if testing.Verbose() { // go test -v and the runner
		t.Log("verbose")
	}
}

func TestDifference(t *testing.T) { _ = difference(2, 1) }

func TestSkipped(t *testing.T) { t.Skip("proves nothing") }

func TestBroken(t *testing.T) { t.Error("always") }
`,
	"replicas/untested/untested.go": "package untested\n\nconst x = 1\n",
	"replicas/" + FileName: `
- {name: caught, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSum, why: w}
- {name: caught-with-output, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSum, output: wrong sum, why: w}
- {name: caught-by-panic, file: replicas.go, replace: return a + b, with: 'panic("x")', package: ., test: TestSum, why: w}
- {name: other-output, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSum, output: something else, why: w}
- {name: survives, file: replicas.go, replace: a - b, with: b - a, package: ., test: TestDifference, why: untested}
- {name: gone, file: replicas.go, replace: a / b, with: a * b, package: ., test: TestSum, why: w}
- {name: no-file, file: other.go, replace: a, with: b, package: ., test: TestSum, why: w}
- {name: does-not-compile, file: replicas.go, replace: a + b, with: a + c, package: ., test: TestSum, why: w}
- {name: no-such-test, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestGone, why: w}
- {name: skipped-test, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSkipped, why: w}
- {name: fails-anyway, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestBroken, why: w}
- {name: no-tests, file: untested/untested.go, replace: "1", with: "2", package: ./untested, test: Test, why: w}
- {name: command, file: replicas.go, replace: a + b, with: a * b, command: [sh, check.sh], output: wrong sum, why: w}
- {name: command-survives, file: replicas.go, replace: a - b, with: b - a, command: [sh, check.sh], why: untested}
- {name: command-fails-anyway, file: replicas.go, replace: a + b, with: a * b, command: [sh, -c, exit 1], why: w}
- {name: command-does-not-compile, file: replicas.go, replace: a + b, with: a + c, command: [sh, check.sh], why: w}
`,
}

func TestRun(t *testing.T) {
	ws := repository(t)
	before := read(t, ws.Path("replicas/replicas.go"))
	var progress, table bytes.Buffer
	runner := &Runner{Workspace: ws, Scratch: t.TempDir(), Parallel: 2, Progress: &progress}
	results, err := runner.Run(t.Context(), ws.Modules)
	if err != nil {
		t.Fatal(err)
	}

	got, details := map[string]Outcome{}, map[string]string{}
	for _, r := range results {
		got[r.Entry.Name], details[r.Entry.Name] = r.Outcome, r.Detail
	}
	want := map[string]Outcome{
		"caught": Caught, "caught-with-output": Caught, "caught-by-panic": Caught, "command": Caught,
		"survives": Survived, "command-survives": Survived,
		"other-output": DoesNotApply, "gone": DoesNotApply, "no-file": DoesNotApply, "does-not-compile": DoesNotApply,
		"no-such-test": DoesNotApply, "skipped-test": DoesNotApply, "fails-anyway": DoesNotApply, "no-tests": DoesNotApply,
		"command-fails-anyway": DoesNotApply, "command-does-not-compile": DoesNotApply,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\n%v", diff, details)
	}
	for name, text := range map[string]string{
		"survives":             "untested",
		"gone":                 "not in replicas.go",
		"does-not-compile":     "undefined: c",
		"no-such-test":         `-run "TestGone" runs no test in replicas`,
		"skipped-test":         "runs no test",
		"fails-anyway":         "fails without the mutation",
		"no-tests":             "has no tests",
		"other-output":         "does not match",
		"command-fails-anyway": "fails without the mutation",
	} {
		if !strings.Contains(details[name], text) {
			t.Errorf("detail of %s is %q, must contain %q", name, details[name], text)
		}
	}
	if after := read(t, ws.Path("replicas/replicas.go")); after != before {
		t.Errorf("the tree itself was changed:\n%s", after)
	}

	failed, err := Table(&table, results)
	if err != nil {
		t.Fatal(err)
	}
	if failed != 12 || !strings.Contains(table.String(), "16 mutants: 4 caught, 2 survived, 10 do not apply") {
		t.Errorf("%d failed, table:\n%s", failed, table.String())
	}
	if n := strings.Count(progress.String(), "\n"); n < len(results) {
		t.Errorf("%d lines of progress for %d mutants:\n%s", n, len(results), progress.String())
	}
}

func TestOnly(t *testing.T) {
	ws := repository(t)
	run := func(pattern string) ([]string, error) {
		runner := &Runner{Workspace: ws, Scratch: t.TempDir(), Only: regexp.MustCompile(pattern), Progress: io.Discard}
		results, err := runner.Run(t.Context(), ws.Modules)
		var names []string
		for _, r := range results {
			names = append(names, r.Module+"/"+r.Entry.Name)
		}
		return names, err
	}
	got, err := run("^replicas/(caught|gone)$")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"replicas/caught", "replicas/gone"}, got); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
	if _, err := run("^caught$"); !errors.Is(err, ErrNoneSelected) {
		t.Errorf("where nothing matches: %v, want %v", err, ErrNoneSelected)
	}
}

func TestCheck(t *testing.T) {
	ws := repository(t)
	faults, err := Check(ws.Path("replicas"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"gone: does not apply: the text to replace is not in replicas.go",
		"no-file: does not apply: there is no file other.go",
		"no-tests: does not apply: package ./untested has no tests",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func repository(t *testing.T) *workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	for name, text := range replicas {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	cmd := exec.Command("git", "init", "--quiet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
