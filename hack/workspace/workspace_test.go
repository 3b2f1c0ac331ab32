// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkspace(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.work":              "go 1.26.0\n\nuse (\n\t./topology\n\t./examples/stub\n)\n",
		"topology/go.mod":      "module " + ModulePrefix + "topology\n",
		"topology/a.go":        "package topology\n",
		"examples/stub/go.mod": "module " + ModulePrefix + "examples/stub\n",
		"tools/lint/go.mod":    "module " + ModulePrefix + "tools/lint\n",
		".gitignore":           "/ignored\n",
		"ignored":              "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := Find(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	if ws.Root != root {
		t.Errorf("root is %s, want %s", ws.Root, root)
	}
	for names, want := range map[string]string{"": "topology examples/stub", "stub topology": "examples/stub topology"} {
		modules, err := ws.Select(strings.Fields(names)...)
		if err != nil {
			t.Fatal(err)
		}
		var dirs []string
		for _, m := range modules {
			dirs = append(dirs, m.Dir)
		}
		if got := strings.Join(dirs, " "); got != want {
			t.Errorf("Select(%s) = %s, want %s", names, got, want)
		}
	}
	if modules, err := ws.Select("lint"); err == nil {
		t.Errorf("a tool is selected: %v", modules)
	}

	if out, err := exec.Command("git", "-C", root, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	files, err := ws.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", "examples/stub/go.mod", "go.work", "tools/lint/go.mod", "topology/a.go", "topology/go.mod"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	if _, err := Find(t.TempDir()); err == nil {
		t.Error("a folder outside of a workspace has one")
	}
}
