// SPDX-License-Identifier: Apache-2.0

package proved

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// family is a workspace in which child requires parent.
var family = map[string]string{
	"go.work":         "go 1.26.0\n\nuse (\n\t./parent\n\t./child\n\t./other\n)\n",
	"parent/go.mod":   "module example.com/parent\n\ngo 1.26.0\n",
	"parent/a.go":     "package parent\n",
	"child/go.mod":    "module example.com/child\n\ngo 1.26.0\n\nrequire example.com/parent v0.0.0\n",
	"child/a.go":      "package child\n",
	"other/go.mod":    "module example.com/other\n\ngo 1.26.0\n",
	"other/a.go":      "package other\n",
	"docs/page.md":    "text\n",
	"Makefile":        "all:\n",
	".ci/run":         "true\n",
	"tools/x/go.mod":  "module example.com/x\n\ngo 1.26.0\n",
	"tools/x/tool.md": "text\n",
}

func repository(t *testing.T) *workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	for name, text := range family {
		write(t, filepath.Join(root, name), text)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keyer(t *testing.T, ws *workspace.Workspace) *Keyer {
	t.Helper()
	k, err := NewKeyer(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKey(t *testing.T) {
	step := Step{Name: "test child", Command: []string{"child", "go", "test"}, Inputs: []string{"child", "docs/page.md"}}
	for name, test := range map[string]struct {
		write   string
		command []string
		same    bool
	}{
		"nothing":                  {same: true},
		"its module":               {write: "child/a.go"},
		"a new file":               {write: "child/testdata/b"},
		"a module that it needs":   {write: "parent/a.go"},
		"another module":           {write: "other/a.go", same: true},
		"versions of any module":   {write: "other/go.mod"},
		"a page that it reads":     {write: "docs/page.md"},
		"another page":             {write: "docs/other.md", same: true},
		"how steps are run":        {write: ".ci/run"},
		"the Makefile":             {write: "Makefile"},
		"a tool":                   {write: "tools/x/go.mod"},
		"another command":          {command: []string{"child", "go", "test", "-short"}},
		"words of another command": {command: []string{"child", "go test"}},
	} {
		t.Run(name, func(t *testing.T) {
			ws := repository(t)
			before, _, err := keyer(t, ws).Key(step)
			if err != nil {
				t.Fatal(err)
			}
			changed := step
			if test.command != nil {
				changed.Command = test.command
			}
			if test.write != "" {
				write(t, ws.Path(test.write), family[test.write]+"// changed\n")
			}
			after, made, err := keyer(t, ws).Key(changed)
			if err != nil {
				t.Fatal(err)
			}
			if (after == before) != test.same {
				t.Errorf("the same key: %t, want %t", after == before, test.same)
			}
			for _, part := range []string{"child", "parent", "docs/page.md", "Makefile"} {
				if !slices.Contains(made, part) {
					t.Errorf("%s is not named in %v", part, made)
				}
			}
		})
	}
	var keys []string
	for range 2 {
		ws := repository(t)
		key, _, err := keyer(t, ws).Key(Step{Name: "x", Command: []string{"go", "test", "-o=" + ws.Root + "/out"}, Inputs: []string{"child"}})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if keys[0] != keys[1] {
		t.Error("two checkouts of the same bytes have two keys")
	}
	if _, _, err := keyer(t, repository(t)).Key(Step{Name: "x", Inputs: []string{"chidl"}}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "chidl") {
		t.Errorf("an input that is not there: %v", err)
	}
}

func TestStore(t *testing.T) {
	t.Setenv("SNO_CACHE", t.TempDir())
	store, err := OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := store.Lookup("a"); ok {
		t.Errorf("an empty store has %v", r)
	}
	want := Record{Step: "test x", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Seconds: 3, Note: "sample 1"}
	if err := store.Add("a", want); err != nil {
		t.Fatal(err)
	}
	got, ok := store.Lookup("a")
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("known %t (-want +got):\n%s", ok, diff)
	}
	write(t, filepath.Join(store.folder, "b.json"), "{\"step\":")
	if r, ok := store.Lookup("b"); ok {
		t.Errorf("an incomplete file is a record: %v", r)
	}
}

func TestBound(t *testing.T) {
	t.Setenv("SNO_CACHE", t.TempDir())
	store, err := OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	parts := func(ws *workspace.Workspace) map[string]string {
		parts, err := keyer(t, ws).Parts()
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	ws := repository(t)
	if bound, _, why := Bound(store.LastPassed(), parts(ws)); bound != BoundEmptyCaches || !strings.Contains(why, "empty caches") {
		t.Errorf("no run has passed: %s, %s", bound, why)
	}
	if err := store.SetLastPassed(parts(ws)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		write, module, says string
		want                time.Duration
	}{
		{"docs/page.md", "", "no module", BoundOneModule},
		{"child/a.go", "child", "child", BoundOneModule},
		{"parent/a.go", "", "child parent", BoundEverything},
	} {
		write(t, ws.Path(step.write), "// changed\n")
		if bound, module, why := Bound(store.LastPassed(), parts(ws)); bound != step.want || module != step.module || !strings.Contains(why, step.says) {
			t.Errorf("%s was changed: %s, %s", step.write, bound, why)
		}
	}
	for _, common := range []string{".ci/run", "go.work"} {
		ws := repository(t)
		if err := store.SetLastPassed(parts(ws)); err != nil {
			t.Fatal(err)
		}
		write(t, ws.Path(common), family[common]+"\n// changed\n")
		if bound, _, why := Bound(store.LastPassed(), parts(ws)); bound != BoundEverything {
			t.Errorf("%s was changed: %s, %s", common, bound, why)
		}
	}
}
