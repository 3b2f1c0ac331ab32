// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpdate(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, ".openshift-tests-extension", "sno_external_conformance.json")
	run := func(args ...string) (int, string) {
		code, _, problem := (&fake{}).run(t, nil, append([]string{"update", "--dir", folder}, args...)...)
		return code, problem
	}
	if code, _ := run("--check"); code != exitFailed {
		t.Errorf("no file: exit code %d", code)
	}
	if code, problem := run(); code != 0 {
		t.Fatal(problem)
	}
	if code, problem := run("--check"); code != 0 {
		t.Errorf("right after update: exit code %d: %s", code, problem)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(data), "The router has one pod", "The router has a pod", 1)
	if err := os.WriteFile(file, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, problem := run(); code != exitFailed || !strings.Contains(problem, "The router has a pod") {
		t.Errorf("a test is missing: exit code %d: %s", code, problem)
	}
	titles["SNO-ING-001"] = "The router has a pod"
	t.Cleanup(func() { delete(titles, "SNO-ING-001") })
	if code, problem := run(); code != 0 {
		t.Errorf("a test has another title: exit code %d: %s", code, problem)
	}
	if code, problem := run("--check"); code != 0 {
		t.Errorf("after the update: exit code %d: %s", code, problem)
	}
}
