// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestReadOverlay(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("module/go.mod", "module example.com/module\n")
	source, other := filepath.Join(dir, "module", "deep", "a.go"), write("other.go", "package deep\n")
	file := write("overlay.json", `{"Replace": {"`+source+`": "`+other+`"}}`)

	first, err := readOverlay(file)
	if err != nil || !slices.Equal(first.modules, []string{"example.com/module"}) || first.file != file {
		t.Fatalf("%+v, %v", first, err)
	}
	write("other.go", "package deep // changed\n")
	if second, err := readOverlay(file); err != nil || second.folder == first.folder {
		t.Errorf("other contents have the same folder: %+v, %v", second, err)
	}
	for name, text := range map[string]string{
		"no JSON": "{", "nothing": "{}", "in no module": `{"Replace": {"` + filepath.Join(dir, "b.go") + `": ""}}`, "relative": `{"Replace": {"a.go": ""}}`,
	} {
		if _, err := readOverlay(write("wrong.json", text)); !errors.Is(err, ErrOverlay) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"": "", "no replacement": `{"Replace": {"` + source + `": "/nowhere/b.go"}}`} {
		path := filepath.Join(dir, "gone.json")
		if text != "" {
			path = write("wrong.json", text)
		}
		if _, err := readOverlay(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A program is only rebuilt if one of its modules is changed.
func TestTouches(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"program/go.mod":  "module example.com/program\n\nrequire example.com/part v0.0.0\n\nreplace example.com/part => ../part\n",
		"program/main.go": "package main\n\nimport _ \"example.com/part\"\n\nfunc main() {}\n",
		"part/go.mod":     "module example.com/part\n",
		"part/part.go":    "package part\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "program.binary")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir, build.Env = filepath.Join(dir, "program"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for module, want := range map[string]bool{"example.com/program": true, "example.com/part": true, "example.com/other": false} {
		if got, err := (&overlay{modules: []string{module}}).touches(binary); err != nil || got != want {
			t.Errorf("%s: %t, %v", module, got, err)
		}
	}
	if _, err := (&overlay{}).touches(filepath.Join(dir, "gone")); err == nil {
		t.Error("no binary, no error")
	}
}
