// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnsureProgram(t *testing.T) {
	cache, module := emptyCache(t), source(t)
	file := filepath.Join(t.TempDir(), "say-version", "main.go")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = "package main\n\nimport (\n\t\"fmt\"\n\n\t\"k8s.io/component-base/version\"\n)\n\nfunc main() { fmt.Print(version.String()) }\n"
	write(text)
	program, err := ensureProgram(t.Context(), module, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(program, filepath.Join(cache, "kube", "programs", "say-version-")) && !strings.HasPrefix(program, filepath.Join(cache, "programs", "say-version-")) {
		t.Errorf("%s is not in the cache %s", program, cache)
	}
	said, err := exec.Command(program).Output()
	if want := "v1.2.3 1 2"; err != nil || string(said) != want {
		t.Errorf("it prints %q, %v, want %q", said, err, want)
	}

	if err := os.WriteFile(program, []byte("kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := ensureProgram(t.Context(), module, file, nil)
	if err != nil || again != program {
		t.Fatalf("%s, %v, want %s", again, err, program)
	}
	if kept, err := os.ReadFile(again); err != nil || string(kept) != "kept" {
		t.Errorf("it was built again: %v", err)
	}

	write(text + "\nfunc init() { undefinedName() }\n")
	if _, err := ensureProgram(t.Context(), module, file, nil); err == nil || !strings.Contains(err.Error(), "undefined: undefinedName") {
		t.Errorf("a changed file that does not compile: %v", err)
	}
	if _, err := ensureProgram(t.Context(), module, file+"x", nil); err == nil {
		t.Error("a file that is not there has a program")
	}
}
