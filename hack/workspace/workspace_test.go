// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func sample(t *testing.T) string {
	return tree(t, map[string]string{
		"go.work":                         "go 1.26.0\n\nuse (\n\t./topology\n\t./examples/hosts/stub\n)\n",
		"topology/go.mod":                 "module " + ModulePrefix + "topology\n\ngo 1.25.0\n",
		"topology/a.go":                   "package topology\n",
		"topology/testdata/broken/go.mod": "not a go.mod",
		"examples/hosts/stub/go.mod":      "module " + ModulePrefix + "examples/hosts/stub\n\ngo 1.26.0\n",
		"examples/hosts/stub/main.go":     "package main\n",
		"e2e/kube/go.mod":                 "module " + ModulePrefix + "e2e/kube\n\ngo 1.26.0\n",
		"tools/lint/go.mod":               "module " + ModulePrefix + "tools/lint\n\ngo 1.26.0\n",
		"tools/lint/a.go":                 "package lint\n",
		".cache/x/go.mod":                 "not a go.mod",
	})
}

func dirs(modules []Module) []string {
	var dirs []string
	for _, m := range modules {
		dirs = append(dirs, m.Dir)
	}
	return dirs
}

func TestFind(t *testing.T) {
	root := sample(t)
	ws, err := Find(filepath.Join(root, "examples", "hosts", "stub"))
	if err != nil {
		t.Fatal(err)
	}
	if ws.Root != root {
		t.Errorf("root is %s, want %s", ws.Root, root)
	}
	if diff := cmp.Diff([]string{"e2e/kube", "examples/hosts/stub", "tools/lint", "topology"}, dirs(ws.Modules)); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	inWork := slices.DeleteFunc(slices.Clone(ws.Modules), func(m Module) bool { return !m.InWork })
	if diff := cmp.Diff([]string{"examples/hosts/stub", "topology"}, dirs(inWork)); diff != "" {
		t.Errorf("modules in go.work (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"examples/hosts/stub", "topology"}, dirs(ws.WithCode())); diff != "" {
		t.Errorf("modules with code (-want +got):\n%s", diff)
	}
}

func TestFindOutside(t *testing.T) {
	if _, err := Find(t.TempDir()); !errors.Is(err, ErrNoRoot) {
		t.Errorf("got %v, want %v", err, ErrNoRoot)
	}
}

func TestLoadMissingModule(t *testing.T) {
	root := tree(t, map[string]string{"go.work": "go 1.26.0\n\nuse ./gone\n"})
	if _, err := Load(root); err == nil || !strings.Contains(err.Error(), "./gone") {
		t.Errorf("got %v, want an error that names ./gone", err)
	}
}

func TestSelectAndFocus(t *testing.T) {
	ws, err := Load(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	selected, err := ws.Select("stub", "topology", "e2e/kube")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"examples/hosts/stub", "topology", "e2e/kube"}, dirs(selected)); diff != "" {
		t.Errorf("selected (-want +got):\n%s", diff)
	}
	for _, name := range []string{"nope", "lint", ""} { // a tool is not a module to test
		if _, err := ws.Select(name); !errors.Is(err, ErrNoModule) {
			t.Errorf("Select(%q): got %v, want %v", name, err, ErrNoModule)
		}
	}

	if err := ws.Focus("topology"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"topology": true, "topology/a.go": true, "topologyx/a.go": false, "Makefile": false} {
		if got := ws.InFocus(name); got != want {
			t.Errorf("InFocus(%q) = %t, want %t", name, got, want)
		}
	}
	if diff := cmp.Diff([]string{"topology"}, dirs(ws.WithCode())); diff != "" {
		t.Errorf("modules with code in focus (-want +got):\n%s", diff)
	}
}

func TestFiles(t *testing.T) {
	root := sample(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("/.cache/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", "topology")
	if err := os.Remove(filepath.Join(root, "topology", "a.go")); err != nil { // tracked, but no longer there
		t.Fatal(err)
	}
	ws, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ws.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".gitignore", "e2e/kube/go.mod", "examples/hosts/stub/go.mod", "examples/hosts/stub/main.go", "go.work",
		"tools/lint/a.go", "tools/lint/go.mod", "topology/go.mod", "topology/testdata/broken/go.mod",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=false")
	ws := &Workspace{Root: "repo"}
	if diff := cmp.Diff([]string{"GOWORK=" + filepath.Join("repo", "go.work")}, ws.Environment(Module{InWork: true})); diff != "" {
		t.Errorf("in the workspace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GOWORK=off", "GOFLAGS=-buildvcs=false -mod=readonly"}, ws.Environment(Module{})); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
}
