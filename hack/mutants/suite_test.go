// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/hack/workspace"
)

// conformance stands in for the suite: its results depend on the mutated text. SNO-TOP-003 fails on ha with any text.
const conformanceScript = `#!/bin/sh
text=nothing tiers=
for arg; do
	case $arg in
	-out=*) out=${arg#-out=} ;;
	-overlay=*) text=$(cat "$(dirname "${arg#-overlay=}")/mutated.go") ;;
	-tiers=*) tiers=${arg#-tiers=} ;;
	-scenarios=*) scenarios=$(echo "${arg#-scenarios=}" | tr , ' ') ;;
	esac
done
echo "$@" >> "$(dirname "$0")/calls"
case $text in *compile*) echo 'sno-conformance: build ./cmd/x in x: exit status 1'; exit 1 ;; *crash*) exit 3 ;; esac
for s in $scenarios; do
	mkdir -p "$out/$s"
	case $text-$s in
	*unsettled*-ha) echo "sno-conformance: set up $s, sno: does not settle within 1m0s: there is no Deployment x" > "$out/$s/run.log"; continue ;;
	*cut*-ha) echo "sno-conformance: set up $s, sno: context canceled" > "$out/$s/run.log"; continue ;;
	*wrong*-ha) more=',{"id":"SNO-ING-001","status":"failed"},{"id":"SNO-ING-002","status":"inconclusive"},{"id":"SNO-ING-003","status":"skipped"}' ;;
	*cut*-none-sno-day1-worker) continue ;;
	nothing-two-node) continue ;;
	*scheduled*-ha) more=; [ "$tiers" = scheduled ] && more=',{"id":"SNO-ING-008","status":"failed"}' ;;
	*late*-external) more=',{"id":"SNO-CON-001","status":"failed"}' ;;
	*) more= ;;
	esac
	top=passed; [ "$s" = ha ] && top=failed
	echo '{"results":[{"id":"SNO-TOP-003","status":"'$top'"}'$more']}' > "$out/$s/report.json"
done
exit 1
`

func suiteRepository(t *testing.T) (*workspace.Workspace, string) {
	t.Helper()
	root := t.TempDir()
	entry := func(name, with string) string {
		return "- {name: " + name + ", file: a.go, replace: original, with: " + with + ", package: ., test: Test, why: it matters}\n"
	}
	for name, text := range map[string]string{
		"go.work":             "go 1.26.0\n\nuse (\n\t./ingress\n\t./console\n\t./auth\n\t./hack\n)\n",
		"ingress/go.mod":      "module example.com/ingress\n\ngo 1.26.0\n",
		"ingress/a.go":        "package ingress // original\n",
		"ingress/" + FileName: entry("caught", "wrong") + entry("twin", "wrong") + entry("unsettled", "unsettled") + entry("unseen", "harmless") + entry("syntax", "compile") + entry("crash", "crash") + entry("cut", "cut") + strings.Replace(entry("gone", "x"), "original", "nowhere", 1),
		"console/go.mod":      "module example.com/console\n\ngo 1.26.0\n",
		"console/a.go":        "package console // original\n",
		"console/" + FileName: entry("late", "late") + entry("scheduled", "scheduled"),
		"auth/go.mod":         "module example.com/auth\n\ngo 1.26.0\n",
		"auth/a.go":           "package auth // original\n",
		"auth/" + FileName:    entry("elsewhere", "late"),
		"hack/go.mod":         "module example.com/hack\n\ngo 1.26.0\n",
		"hack/" + FileName:    entry("tool", "wrong"),
		"e2e/go.mod":          "module example.com/e2e\n\ngo 1.26.0\n",
	} {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	ws, err := workspace.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "conformance")
	writeFile(t, program, conformanceScript)
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return ws, program
}

func TestSuite(t *testing.T) {
	ws, program := suiteRepository(t)
	var progress bytes.Buffer
	suite := Suite{Runner: &Runner{Workspace: ws, Scratch: t.TempDir(), Progress: &progress}, Program: program, Tiers: "static,scheduled"}
	results, err := suite.Run(t.Context(), ws.Modules)
	if err != nil {
		t.Fatal(err)
	}
	got, by := map[string]Outcome{}, map[string]string{}
	for _, r := range results {
		got[r.Module+"/"+r.Entry.Name] = r.Outcome
		if len(r.By) > 0 {
			by[r.Entry.Name] = strings.Join(r.By, " ")
		}
	}
	want := map[string]Outcome{
		"ingress/caught": Caught, "ingress/twin": Caught, "ingress/unsettled": NotSettled, "ingress/unseen": NotDetected, "ingress/syntax": DoesNotApply,
		"ingress/crash": NotRun, "ingress/cut": NotRun, "ingress/gone": DoesNotApply, "console/late": Caught, "console/scheduled": Caught,
		"auth/elsewhere": Caught,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\n%s", diff, progress.String())
	}
	wantBy := map[string]string{"caught": "SNO-ING-001 SNO-ING-002", "twin": "SNO-ING-001 SNO-ING-002", "late": "SNO-CON-001", "scheduled": "SNO-ING-008", "elsewhere": "SNO-CON-001"}
	if diff := cmp.Diff(wantBy, by); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	for _, want := range []string{"fails on ha without a mutation, and is not counted: SNO-TOP-003\n", "two-node is left out"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, progress.String())
		}
	}

	calls := strings.Split(strings.TrimSpace(read(t, filepath.Join(filepath.Dir(program), "calls"))), "\n")
	// One run without a mutation; of two equal mutants only one is tried, and none whose text is gone; undetected
	// ones are tried in the other tiers too.
	wantRuns := map[string]int{"-tiers=static,scheduled": 1, "-tiers=static": 5 + 1 + 2 + 2 + 2, "-tiers=scheduled": 1 + 1}
	gotRuns := map[string]int{}
	for _, call := range calls {
		gotRuns[strings.Fields(call)[2]]++
	}
	if diff := cmp.Diff(wantRuns, gotRuns); diff != "" {
		t.Errorf("runs of the suite (-want +got):\n%s\n%s", diff, strings.Join(calls, "\n"))
	}
	if first := calls[0]; strings.Contains(first, "-overlay") || strings.Contains(first, "-built") ||
		!strings.Contains(first, "-scenarios=external,ha,none-sno-day1-worker,two-node -modules=auth,console,ingress,topology -tiers=static,scheduled -parallel=2") {
		t.Errorf("the first run: %s", first)
	}
	for _, call := range calls[1:] {
		if strings.Contains(call, "two-node") {
			t.Errorf("a cluster that was never set up is used: %s", call)
		}
	}
}

func TestSuiteTable(t *testing.T) {
	row := func(outcome Outcome, by ...string) Result {
		return Result{Module: "m", Entry: Entry{Name: "n", Why: "it matters"}, Outcome: outcome, By: by, Took: 2 * time.Second}
	}
	notSettled := row(NotSettled)
	notSettled.Detail = "ha: there is no Deployment x"
	for name, test := range map[string]struct {
		results []Result
		want    []string
		err     error
	}{
		"caught":      {[]Result{row(Caught, "A", "B")}, []string{"A, B  ", "2 s\n", "1 mutants: 1 caught by a check, 0 keep"}, nil},
		"by many":     {[]Result{row(Caught, "A", "B", "C", "D", "E", "F")}, []string{"A, B, C, D and 2 more"}, nil},
		"not seen":    {[]Result{row(NotDetected)}, []string{"m/n: not seen: it matters\n", "1 not seen by the suite"}, nil},
		"not settled": {[]Result{notSettled}, []string{"m/n: does not settle: ha: there is no", "1 keep a cluster"}, nil},
		"no time":     {[]Result{row(NotTried)}, []string{"1 of 1 NOT TRIED in this run\n"}, ErrNoSuite},
		"not run":     {[]Result{row(NotRun)}, []string{"1 of 1 could not be run\n"}, ErrNoSuite},
		"one fails":   {[]Result{row(NotRun), row(NotDetected)}, []string{"1 of 2 could not be run\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var table bytes.Buffer
			if err := SuiteTable(&table, test.results); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			for _, want := range test.want {
				if !strings.Contains(table.String(), want) {
					t.Errorf("%q is not in the table:\n%s", want, table.String())
				}
			}
		})
	}
}

// If the suite does not run, or the budget is used up, there is no result for any mutant.
func TestSuiteThatDoesNotRun(t *testing.T) {
	ws, program := suiteRepository(t)
	runner := func(only string) *Runner {
		return &Runner{Workspace: ws, Scratch: t.TempDir(), Progress: io.Discard, Only: regexp.MustCompile(only)}
	}
	broken := filepath.Join(t.TempDir(), "broken")
	writeFile(t, broken, "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Suite{Runner: runner("."), Program: broken}).Run(t.Context(), ws.Modules); !errors.Is(err, ErrNoSuite) {
		t.Errorf("a broken suite: %v", err)
	}
	if _, err := (&Suite{Runner: runner("^hack/"), Program: program}).Run(t.Context(), ws.Modules); !errors.Is(err, ErrNoneSelected) {
		t.Errorf("a module that runs nowhere: %v", err)
	}
	late := runner("/caught$")
	late.Budget, late.now = time.Second, minutes()
	results, err := (&Suite{Runner: late, Program: program}).Run(t.Context(), ws.Modules)
	if err != nil || len(results) != 1 || results[0].Outcome != NotTried {
		t.Errorf("without time: %+v, %v", results, err)
	}
}

func TestWriteOverlay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep")
	file, err := writeOverlay(folder, "/original.go", "package mutated")
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal([]byte(read(t, file)), &overlay); err != nil {
		t.Fatal(err)
	}
	if got := read(t, overlay.Replace["/original.go"]); len(overlay.Replace) != 1 || got != "package mutated" {
		t.Errorf("%v has %q", overlay, got)
	}
}

// Every module that can be on a cluster has clusters, two at a time. The suite runs no command line.
func TestClustersOf(t *testing.T) {
	for module, steps := range clustersOf {
		for _, step := range steps {
			if len(step) == 0 || len(step) > 2 {
				t.Errorf("%s: %v", module, step)
			}
		}
	}
	ws, err := workspace.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ws.Modules {
		_, err := os.Stat(ws.Path(m.Dir + "/" + FileName))
		// The suite checks the effects of controllers; a host that stands in for a stock operator is their reference.
		none := strings.HasPrefix(m.Dir, "examples/") || slices.Contains([]string{"hack", "e2e", "cli", "conformance", "testcluster", "render", "install"}, m.Name())
		if has := err == nil && !none; has != (clustersOf[m.Name()] != nil) {
			t.Errorf("%s has mutants for clusters: %t, clusters: %v", m.Name(), has, clustersOf[m.Name()])
		}
	}
	if got := checksFor([]string{"ingress", "console"}); !slices.Equal(got, []string{"console", "ingress", "topology"}) {
		t.Errorf("checks of two modules: %v", got)
	}
	if got := checksFor([]string{"ingress", "patch"}); got != nil {
		t.Errorf("checks of a library: %v", got)
	}
}
