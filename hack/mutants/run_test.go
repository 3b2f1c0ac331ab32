// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	source = `package replicas

func sum(a, b int) int { return a + b }

func difference(a, b int) int { return a - b }
`
	tests = `package replicas

import "testing"

func TestSum(t *testing.T) {
	if sum(2, 1) != 3 {
		t.Error("wrong sum")
	}
}

func TestDifference(t *testing.T) { _ = difference(2, 1) }

func TestSkipped(t *testing.T) { t.Skip("proves nothing") }

func TestBroken(t *testing.T) { t.Error("always") }
`
	entries = `
- {name: caught, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSum, why: w}
- {name: caught-by-panic, file: replicas.go, replace: return a + b, with: 'panic("x")', package: ., test: TestSum, why: w}
- {name: survives, file: replicas.go, replace: a - b, with: b - a, package: ., test: TestDifference, why: untested}
- {name: gone, file: replicas.go, replace: a / b, with: a * b, package: ., test: TestSum, why: w}
- {name: twice, file: replicas.go, replace: int, with: uint, package: ., test: TestSum, why: w}
- {name: no-file, file: other.go, replace: a, with: b, package: ., test: TestSum, why: w}
- {name: no-tests, file: replicas.go, replace: a + b, with: a * b, package: ./untested, test: TestSum, why: w}
- {name: does-not-compile, file: replicas.go, replace: a + b, with: a + c, package: ., test: TestSum, why: w}
- {name: no-such-test, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestGone, why: w}
- {name: skipped, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestSkipped, why: w}
- {name: fails-anyway, file: replicas.go, replace: a + b, with: a * b, package: ., test: TestBroken, why: w}
`
)

// replicas writes a small module: its test detects a wrong sum and not a wrong difference.
func replicas(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "replicas")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/replicas\n\ngo 1.25.0\n", "replicas.go": source, "replicas_test.go": tests, FileName: entries,
	} {
		write(t, dir, name, text)
	}
	return dir
}

func TestRun(t *testing.T) {
	dir := replicas(t)
	var out bytes.Buffer
	if err := Run(t.Context(), []string{dir}, regexp.MustCompile(""), &out); !errors.Is(err, ErrNotCaught) {
		t.Errorf("got %v, want %v", err, ErrNotCaught)
	}
	for name, want := range map[string]string{
		"caught": "", "caught-by-panic": "",
		"survives": "survived: TestDifference passes; untested", "gone": "occurs 0 times", "twice": "occurs 4 times",
		"no-file": "no such file", "no-tests": "without the mutation", "does-not-compile": "undefined: c",
		"no-such-test": "runs no test", "skipped": "runs no test", "fails-anyway": "fails without the mutation",
	} {
		row, detail := "DOES NOT APPLY", `\nreplicas/`+name+": .*(\n\t.*)*"+want
		switch name {
		case "caught", "caught-by-panic":
			row, detail = "caught", ""
		case "survives":
			row = "SURVIVED"
		}
		if !regexp.MustCompile(`(?m)^`+row+` .* replicas/`+name+`$`).Match(out.Bytes()) || !regexp.MustCompile(detail).Match(out.Bytes()) {
			t.Errorf("%s: want %s, %s", name, row, detail)
		}
	}
	if !strings.HasSuffix(out.String(), "\n2 of 11 mutants are caught\n") || t.Failed() {
		t.Errorf("got:\n%s", &out)
	}

	out.Reset()
	if err := Run(t.Context(), []string{dir}, regexp.MustCompile("^replicas/caught$"), &out); err != nil {
		t.Errorf("a caught one: %v\n%s", err, &out)
	}
	if err := Run(t.Context(), []string{dir}, regexp.MustCompile("^caught$"), io.Discard); err == nil {
		t.Error("no error where nothing matches")
	}
	if after, err := os.ReadFile(filepath.Join(dir, "replicas.go")); err != nil || string(after) != source {
		t.Errorf("the tree itself was changed: %v\n%s", err, after)
	}
}

func TestCheck(t *testing.T) {
	faults, err := Check(replicas(t))
	want := []string{"gone: does", "twice: does", "no-file: does", "no-tests: does not apply: package ./untested has no tests"}
	if err != nil || !slices.EqualFunc(faults, want, strings.HasPrefix) {
		t.Errorf("got %v, %q, want %q", err, faults, want)
	}
}
