// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneEntry = `
- name: worker-instead-of-master
  file: desired.go
  replace: master
  with: worker
  package: .
  test: TestDesired
  why: the router floats
`

func TestRead(t *testing.T) {
	want := []Entry{{
		Name: "worker-instead-of-master", File: "desired.go", Replace: "master", With: "worker",
		Package: ".", Test: "TestDesired", Why: "the router floats",
	}}
	got, err := Read(write(t, oneEntry))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestReadRejects(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"unknown key":          {"why:", "reason:", "reason"},
		"no why":               {"why: the router floats", "why: ''", "why is empty"},
		"no change":            {"with: worker", "with: master", "the same"},
		"file elsewhere":       {"desired.go", "../patch/check.go", "inside the module"},
		"file is a test":       {"desired.go", "desired_test.go", "is a test"},
		"no test":              {"test: TestDesired", "", "needs package and test, or command"},
		"several packages":     {"package: .", "package: ./...", "one package"},
		"package elsewhere":    {"package: .", "package: ../patch", "one package"},
		"bad expression":       {"TestDesired", "'Test('", "missing closing"},
		"test and command":     {"why:", "command: [make, run]\n  why:", "command excludes"},
		"bad output":           {"why:", "output: '['\n  why:", "missing closing"},
		"two of the same":      {oneEntry, oneEntry + oneEntry, "the name is taken"},
		"empty":                {oneEntry, "[]", "no entries"},
		"text to replace gone": {"replace: master", "replace: ''", "replace is empty"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Count(oneEntry, test.old) != 1 {
				t.Fatalf("%q must occur once", test.old)
			}
			_, err := Read(write(t, strings.Replace(oneEntry, test.old, test.new, 1)))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, ErrInvalid, test.want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	entry := Entry{File: "a.go", Replace: "one", With: "two"}
	tests := map[string]struct {
		source, want, fault string
	}{
		"once":  {source: "x one y", want: "x two y"},
		"gone":  {source: "x y", fault: "not in a.go"},
		"twice": {source: "one one", fault: "occurs 2 times"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := entry.Apply(test.source)
			if test.fault != "" {
				if !errors.Is(err, ErrDoesNotApply) || !strings.Contains(err.Error(), test.fault) {
					t.Fatalf("got %v, want %v with %q", err, ErrDoesNotApply, test.fault)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
