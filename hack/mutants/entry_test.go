// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const oneEntry = "- {name: floats, file: desired.go, replace: master, with: worker, package: ., test: TestDesired, why: w}\n"

func TestReadRejects(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"unknown key":      {"why:", "reason:", "reason"},
		"no why":           {"why: w", "why: ''", "may be empty"},
		"no change":        {"with: worker", "with: master", "the same"},
		"file elsewhere":   {"desired.go", "../patch/check.go", "inside the module"},
		"file is a test":   {"desired.go", "desired_test.go", "no test"},
		"no test":          {"test: TestDesired, ", "", "may be empty"},
		"several packages": {"package: .", "package: ./...", "one package"},
		"absolute package": {"package: .", "package: /patch", "one package"},
		"two of the same":  {oneEntry, oneEntry + oneEntry, "the name is taken"},
		"empty":            {oneEntry, "[]", "no entries"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(write(t, t.TempDir(), FileName, strings.Replace(oneEntry, test.old, test.new, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
