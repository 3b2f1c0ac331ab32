// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

func TestCacheFiles(t *testing.T) {
	whole, half := strings.Repeat("a", 64), strings.Repeat("a", 30)
	for name, test := range map[string]struct {
		text  string
		known bool
	}{
		"empty":              {text: ""},
		"one key":            {text: whole + "\n", known: true},
		"the last line open": {text: half + "\n\n" + whole, known: true},
		"cut short":          {text: half},
		"run into another":   {text: half + whole + "\n"},
		"garbage":            {text: "\x00\xff\n{}\n" + whole + " \x00\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "deep", "caught")
			writeFile(t, file, test.text)
			if got := OpenCache(file).has(whole); got != test.known {
				t.Errorf("known: %t, want %t", got, test.known)
			}
			added := strings.Repeat("b", 64)
			if err := OpenCache(file).add(added); err != nil {
				t.Fatal(err)
			}
			if again := OpenCache(file); !again.has(added) || again.has(whole) != test.known {
				t.Errorf("after another key was added: %q", read(t, file))
			}
		})
	}
	folder := OpenCache(t.TempDir())
	if folder.has("") || folder.has("a") {
		t.Error("an unreadable cache has keys")
	}
	if err := folder.add("a"); err == nil || folder.has("a") {
		t.Errorf("a key was added to a cache that cannot be written: %v", err)
	}
}

var family = map[string]string{
	"go.work":                 "go 1.26.0\n\nuse (\n\t./replicas\n\t./child\n\t./grandchild\n\t./unrelated\n)\n",
	"child/go.mod":            "module example.com/child\n\ngo 1.26.0\n\nrequire example.com/replicas v0.0.0\n",
	"child/child.go":          "package child\n",
	"grandchild/go.mod":       "module example.com/grandchild\n\ngo 1.26.0\n\nrequire example.com/child v0.0.0\n",
	"grandchild/a.go":         "package grandchild\n",
	"grandchild/testdata/a":   "1",
	"grandchild/" + FileName:  "[]",
	"unrelated/go.mod":        "module example.com/unrelated\n\ngo 1.26.0\n",
	"unrelated/unrelated.go":  "package unrelated\n",
	"grandchild2/grandchild2": "not below grandchild",
}

func TestKey(t *testing.T) {
	entry := Entry{Name: "n", File: "a.go", Replace: "a", With: "b", Package: ".", Test: "Test", Why: "w"}
	for name, test := range map[string]struct {
		write, text string
		move        string // where the file that write names goes
		entry       func(*Entry)
		env, value  string
		same        bool
	}{
		"nothing":                       {same: true},
		"name and reason":               {entry: func(e *Entry) { e.Name, e.Why = "m", "v" }, same: true},
		"another file":                  {entry: func(e *Entry) { e.File = "b.go" }},
		"another text":                  {entry: func(e *Entry) { e.Replace = "c" }},
		"another mutation":              {entry: func(e *Entry) { e.With = "c" }},
		"another package":               {entry: func(e *Entry) { e.Package = "./c" }},
		"another test":                  {entry: func(e *Entry) { e.Test = "TestA" }},
		"another output":                {entry: func(e *Entry) { e.Output = "x" }},
		"another source":                {write: "grandchild/a.go", text: "package grandchild // changed\n"},
		"a new file":                    {write: "grandchild/a_test.go", text: "package grandchild\n"},
		"a file that moved":             {write: "grandchild/testdata/a", move: "grandchild/testdata/b"},
		"other test data":               {write: "grandchild/testdata/a", text: "2"},
		"other go.sum":                  {write: "grandchild/go.sum", text: "x"},
		"a sibling that it requires":    {write: "child/child.go", text: "package child // changed\n"},
		"one that the sibling requires": {write: "replicas/replicas.go", text: "package replicas // changed\n"},
		"versions of any module":        {write: "unrelated/go.mod", text: "module example.com/unrelated\n\ngo 1.26.1\n"},
		"the workspace":                 {write: "go.work", text: family["go.work"] + "\n// changed\n"},
		"a module that is not required": {write: "unrelated/unrelated.go", text: "package unrelated // changed\n", same: true},
		"a folder with the same start":  {write: "grandchild2/grandchild2", text: "changed", same: true},
		"another entry":                 {write: "grandchild/" + FileName, text: "[1]", same: true},
		"flags of Go":                   {env: "GOFLAGS", value: "-count=2"},
		"other Kubernetes programs":     {env: "KUBEBUILDER_ASSETS", value: "/kube/v2"},
		"the same in another place":     {env: "KUBEBUILDER_ASSETS", value: "/elsewhere/v1", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOFLAGS", "")
			t.Setenv("KUBEBUILDER_ASSETS", "/kube/v1")
			ws := familyRepository(t)
			before := keyOf(t, ws, "grandchild", entry)
			changed := entry
			if test.entry != nil {
				test.entry(&changed)
			}
			switch {
			case test.move != "":
				if err := os.Rename(ws.Path(test.write), ws.Path(test.move)); err != nil {
					t.Fatal(err)
				}
			case test.write != "":
				writeFile(t, ws.Path(test.write), test.text)
			}
			if test.env != "" {
				t.Setenv(test.env, test.value)
			}
			if got := keyOf(t, ws, "grandchild", changed) == before; got != test.same {
				t.Errorf("the same key: %t, want %t", got, test.same)
			}
		})
	}
}

func TestKeyOfCommand(t *testing.T) {
	ws := familyRepository(t)
	entry := Entry{File: "a.go", Replace: "a", With: "b", Command: []string{"make", "run"}}
	before := keyOf(t, ws, "grandchild", entry)
	writeFile(t, ws.Path("unrelated/unrelated.go"), "package unrelated // changed\n")
	if keyOf(t, ws, "grandchild", entry) == before {
		t.Error("another module was changed, and the key is the same")
	}
}

// The next run knows caught mutants and no others; Fresh ignores the cache.
func TestCachedRuns(t *testing.T) {
	ws := repository(t)
	file := filepath.Join(t.TempDir(), "caught")
	caught := map[string]Outcome{"caught": Caught, "survives": Survived, "gone": DoesNotApply}
	cached := map[string]Outcome{"caught": Cached, "survives": Survived, "gone": DoesNotApply}
	for _, step := range []struct {
		name  string
		fresh bool
		do    func()
		want  map[string]Outcome
	}{
		{name: "first", want: caught},
		{name: "second", want: cached},
		{name: "fresh", fresh: true, want: caught},
		{name: "changed", do: func() { writeFile(t, ws.Path("replicas/new.go"), "package replicas\n") }, want: caught},
		{name: "corrupt", do: func() { writeFile(t, file, "garbage") }, want: caught},
	} {
		if step.do != nil {
			step.do()
		}
		runner := &Runner{
			Workspace: ws, Scratch: t.TempDir(), Parallel: 2, Progress: io.Discard, Cache: OpenCache(file), Fresh: step.fresh,
			Only: regexp.MustCompile("^replicas/(caught|survives|gone)$"),
		}
		results, err := runner.Run(t.Context(), ws.Modules)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, outcomes(results)); diff != "" {
			t.Errorf("%s run (-want +got):\n%s", step.name, diff)
		}
		hasTable(t, results, 2, "3 mutants: 1 caught, 1 survived, 1 do not apply\n")
	}
}

// A result does not count if a file changes during the trial.
func TestChangedMeanwhile(t *testing.T) {
	for name, text := range map[string]string{"changed": "package replicas\n", "unchanged": ""} {
		t.Run(name, func(t *testing.T) {
			ws := repository(t)
			runner := &Runner{Workspace: ws, Cache: OpenCache(filepath.Join(t.TempDir(), "caught")), Only: regexp.MustCompile("/caught$")}
			jobs, err := runner.jobs(ws.Modules)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := runner.recall(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
			if text != "" {
				writeFile(t, ws.Path("replicas/new.go"), text)
			}
			jobs[0].result.Outcome = Caught
			if err := runner.remember(t.Context(), jobs[0]); err != nil {
				t.Fatal(err)
			}
			if got, want := len(runner.Cache.keys) > 0, text == ""; got != want {
				t.Errorf("remembered: %t, want %t", got, want)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	ws := repository(t)
	const only = "^replicas/(gone|no-file|caught)$"
	for name, test := range map[string]struct {
		budget time.Duration
		tried  int
		want   string
	}{
		"none":     {budget: 0, tried: 3, want: "3 mutants: 1 caught, 0 survived, 2 do not apply\n"},
		"plenty":   {budget: time.Hour, tried: 3, want: "3 mutants: 1 caught, 0 survived, 2 do not apply\n"},
		"for two":  {budget: 3 * time.Minute, tried: 2, want: "\n1 of 3 NOT TRIED in this run: budget\n"},
		"for none": {budget: time.Second, tried: 0, want: "\n3 of 3 NOT TRIED in this run: budget\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runner := &Runner{Workspace: ws, Scratch: t.TempDir(), Progress: io.Discard, Only: regexp.MustCompile(only), Budget: test.budget, now: minutes()}
			results, err := runner.Run(t.Context(), ws.Modules)
			if err != nil {
				t.Fatal(err)
			}
			tried, failed := 0, 0
			for _, outcome := range outcomes(results) {
				if outcome != NotTried {
					tried++
				}
				if outcome == DoesNotApply {
					failed++
				}
			}
			if tried != test.tried {
				t.Errorf("%d were tried, want %d", tried, test.tried)
			}
			hasTable(t, results, failed, test.want)
		})
	}
}

// In any order, cached mutants use none of the budget.
func TestBudgetAndCache(t *testing.T) {
	ws := repository(t)
	file := filepath.Join(t.TempDir(), "caught")
	for i, want := range []map[string]Outcome{{"caught": Caught}, {"caught": Cached, "command": NotTried}} {
		only := []string{"/caught$", "/(caught|command)$"}[i]
		runner := &Runner{
			Workspace: ws, Scratch: t.TempDir(), Progress: io.Discard, Only: regexp.MustCompile(only), Cache: OpenCache(file),
			Budget: []time.Duration{0, time.Second}[i], now: minutes(),
		}
		results, err := runner.Run(t.Context(), ws.Modules)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, outcomes(results)); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestOrder(t *testing.T) {
	ws := repository(t)
	order := func(number uint64) (names []string) {
		runner := &Runner{Workspace: ws, Order: number}
		jobs, err := runner.jobs(ws.Modules)
		if err != nil {
			t.Fatal(err)
		}
		left, err := runner.recall(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range left {
			names = append(names, j.name())
		}
		return names
	}
	if diff := cmp.Diff(order(1), order(1)); diff != "" {
		t.Errorf("one number, two orders:\n%s", diff)
	}
	if cmp.Equal(order(1), order(2)) {
		t.Errorf("two numbers, one order: %v", order(1))
	}
}

func minutes() func() time.Time {
	at := time.Time{}
	return func() time.Time {
		at = at.Add(time.Minute)
		return at
	}
}

func outcomes(results []Result) map[string]Outcome {
	got := map[string]Outcome{}
	for _, r := range results {
		got[r.Entry.Name] = r.Outcome
	}
	return got
}

func hasTable(t *testing.T, results []Result, failed int, want string) {
	t.Helper()
	var table bytes.Buffer
	got, err := Table(&table, results)
	if err != nil {
		t.Fatal(err)
	}
	if got != failed || !strings.Contains(table.String(), want) {
		t.Errorf("%d failed, want %d; the table must contain %q:\n%s", got, failed, want, table.String())
	}
	for _, r := range results {
		if r.Outcome == Cached && !strings.Contains(table.String(), "known from an earlier run of the same bytes: 1 of those caught\n") {
			t.Errorf("the number of cached mutants is missing:\n%s", table.String())
		}
	}
}

func keyOf(t *testing.T, ws *workspace.Workspace, module string, entry Entry) string {
	t.Helper()
	modules, err := ws.Select(module)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKeyer(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	key, err := k.key(modules[0], entry)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func familyRepository(t *testing.T) *workspace.Workspace {
	t.Helper()
	ws := repository(t)
	for name, text := range family {
		writeFile(t, ws.Path(name), text)
	}
	ws, err := workspace.Load(ws.Root)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
