// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/patch/golden"
)

var errNoAnswer = errors.New("no answer")

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestReport(t *testing.T) {
	t.Parallel()
	golden.Test(t, "testdata", func(t *testing.T, input fs.FS) map[string]string {
		var given struct {
			Findings []finding
			Partial  bool
		}
		if err := json.Unmarshal(must(fs.ReadFile(input, "findings.json")), &given); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, format := range []string{formatTable, formatJSON} {
			got[format+".txt"] = reported(t, format, given.Findings, !given.Partial)
		}
		return got
	})
}

func reported(t *testing.T, format string, findings []finding, complete bool) string {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
	var out bytes.Buffer
	r, s := newReport(format, &out, "nodes.yaml", now), summary{Complete: complete}
	for _, f := range findings {
		s.add(f)
		r.add(f)
	}
	if err := r.end(s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A flood is counted, not listed, and every approval is printed.
func TestReportFlood(t *testing.T) {
	t.Parallel()
	flood := make([]finding, 10000)
	for i := range flood {
		flood[i] = finding{Request: fmt.Sprintf("csr-%d", i), Outcome: pending}
		flood[i].Reason = "NotInInventory"
	}
	flood[9999].Outcome = approved
	out := reported(t, formatTable, flood, true)
	for _, want := range []string{"csr-9999", "... and 9899 more pending: NotInInventory\n", "1 approved, 9999 left pending.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if n := strings.Count(out, "\n"); n > 600 {
		t.Errorf("%d lines", n)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &changes{report: newReport(formatTable, &out, "nodes.yaml", time.Now), now: map[types.UID][2]string{}}
	pass := func(outcomes ...outcome) string {
		out.Reset()
		var s summary
		for i, o := range outcomes {
			f := finding{Request: fmt.Sprintf("csr-%d", i), Outcome: o, uid: types.UID(fmt.Sprint(i))}
			f.Reason = "NotInInventory"
			s.add(f)
			c.add(f)
		}
		if err := c.end(s); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if first := pass(pending, pending); strings.Count(first, "csr-") != 4 {
		t.Errorf("at first:\n%s", first)
	}
	if again := pass(pending, pending); again != "" {
		t.Errorf("again:\n%s", again)
	}
	if later := pass(approved, pending); !strings.Contains(later, "csr-0") || strings.Contains(later, "csr-1") || strings.Contains(later, "more pending") {
		t.Errorf("later:\n%s", later)
	}
}

func TestReportBroken(t *testing.T) {
	t.Parallel()
	reader, broken := io.Pipe()
	reader.CloseWithError(errNoAnswer)
	for _, format := range []string{formatTable, formatJSON} {
		if err := newReport(format, broken, "", time.Now).end(summary{}); !errors.Is(err, errNoAnswer) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"worker-1":                       "worker-1",
		`it is "worker-1"`:               `it is "worker-1"`,
		"worker-1\r\x1b[2Kapproved":      `worker-1\r\x1b[2Kapproved`,
		"w\u043erker\u202e":              `w\u043erker\u202e`,
		"a\xffb":                         `a\xffb`,
		"it's":                           "it's",
		strings.Repeat("x", maxPlain):    strings.Repeat("x", maxPlain),
		strings.Repeat("x", 20*maxPlain): strings.Repeat("x", maxPlain) + "...",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	good := []string{"--inventory=nodes.yaml", "--once"}
	for want, args := range map[string][]string{
		"--inventory is missing":             {"--once"},
		"set one of --once and --watch":      {"--inventory=nodes.yaml"},
		"one of --once and":                  append(good, "--watch"),
		`unexpected arguments ["now"]`:       append(good, "now"),
		`-o "yaml" is neither`:               append(good, "-o=yaml"),
		"--max-approvals=0 is not":           append(good, "--max-approvals=0"),
		"--max-approvals-window=2h0m0s is":   append(good, "--max-approvals-window=2h"),
		"--max-approvals-window=0s is":       append(good, "--max-approvals-window=0"),
		"--max-age=0s is not positive":       append(good, "--max-age=0"),
		"--every=1ms is shorter":             append(good, "--every=1ms"),
		"--timeout=-1s is not":               append(good, "--timeout=-1s"),
		"flag provided but not defined: -go": append(good, "--go"),
	} {
		var out bytes.Buffer
		if _, err := parse(args, &out); !errors.Is(err, errUsage) || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %v, printed %q; want %q", args, err, &out, want)
		}
		if code := Main(args, nil, &out); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "Exit codes: 0 ") {
		t.Errorf("help: %v\n%s", err, &help)
	}
	o, err := parse(slices.Clip(good), &help)
	if err != nil || o.limit != (limit{50, 10 * time.Minute}) || o.policy != (requests.Policy{MaxAge: 2 * time.Hour, MaxValidity: 366 * 24 * time.Hour}) {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

// No window has more approvals than the limit, and the next approval is possible right after the wait.
func TestLimitHolds(t *testing.T) {
	t.Parallel()
	r, at := rand.New(rand.NewPCG(1, 1)), time.Unix(1e9, 0)
	l := limit{approvals: 5, window: time.Minute}
	var spent []time.Time
	for range 2000 {
		at = at.Add(time.Duration(r.IntN(20)) * time.Second)
		wait := l.wait(spent, at)
		if wait == 0 {
			spent = append(spent, at)
		} else if l.wait(spent, at.Add(wait)) != 0 || l.wait(spent, at.Add(wait-1)) != 1 {
			t.Fatalf("the next approval is not possible after %s", wait)
		}
	}
	for i := l.approvals; i < len(spent); i++ {
		if spent[i].Sub(spent[i-l.approvals]) < l.window {
			t.Fatalf("%d approvals within %s", l.approvals+1, spent[i].Sub(spent[i-l.approvals]))
		}
	}
	if len(spent) < 500 {
		t.Errorf("only %d of 2000 were allowed", len(spent))
	}
	slices.Reverse(spent) // in any order
	if now := spent[0]; l.wait(spent, now) != l.wait(spent[:10], now) {
		t.Error("the result depends on the order")
	}
}

// A file with errors leaves the last inventory in use, a file that was removed leaves none.
func TestInventoryIsReadAgain(t *testing.T) {
	t.Parallel()
	var messages bytes.Buffer
	tool := newTool(options{inventoryFile: filepath.Join(t.TempDir(), "nodes.yaml")}, &messages, Connections{})
	for _, step := range []struct {
		content string // empty to remove the file
		want    bool
		message string
	}{
		{"version: 1\nnodes: [{name: one}]\n", true, ""}, {"version: 1\nnodes: [", true, "the last inventory that could be read is used"},
		{"", false, "nothing is approved until there is one"}, {"version: 2\n", false, "the last inventory"},
		{"version: 1\nnodes: [{name: one}]\n", true, ""},
	} {
		messages.Reset()
		err := os.WriteFile(tool.inventoryFile, []byte(step.content), 0o600)
		if step.content == "" {
			err = os.Remove(tool.inventoryFile)
		}
		if err != nil {
			t.Fatal(err)
		}
		tool.readInventoryAgain()
		if got := tool.inventory.Node("one") != nil; got != step.want || !strings.Contains(messages.String(), step.message) {
			t.Errorf("after %q one is allowed: %t; %s", step.content, got, &messages)
		}
	}
}

// fakeKubelets answer after a second and record the calls.
func fakeKubelets() (k *kubelets, calls func() []string) {
	var mu sync.Mutex
	var log []string
	k = &kubelets{answered: func() {}}
	k.node = func(_ context.Context, name string) (*corev1.Node, error) {
		if name == "gone" {
			return nil, errNoAnswer
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	k.call = func(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
		mu.Lock()
		log = append(log, node.Name)
		mu.Unlock()
		if !wait(ctx, time.Second) {
			return nil, ctx.Err()
		}
		return []*x509.Certificate{{}}, nil
	}
	return k, func() []string {
		k.calls.Wait()
		return log
	}
}

// One call answers all lookups until the answer expires.
func TestAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, calls := fakeKubelets()
		for range 3 {
			if got := k.lookUp(t.Context(), "worker-1"); !got.calling {
				t.Fatalf("before the answer: %+v", got)
			}
		}
		k.calls.Wait()
		if got := k.lookUp(t.Context(), "worker-1"); got.calling || len(got.chain) != 1 || got.err != nil {
			t.Errorf("after the answer: %+v", got)
		}
		wait(t.Context(), answerValid)
		if got := k.lookUp(t.Context(), "worker-1"); !got.calling {
			t.Errorf("an expired answer is used: %+v", got)
		}
		k.lookUp(t.Context(), "gone")
		k.calls.Wait()
		if got := k.lookUp(t.Context(), "gone"); !errors.Is(got.err, errNoAnswer) {
			t.Errorf("a node that is gone: %+v", got)
		}
		wait(t.Context(), answerValid)
		k.lookUp(t.Context(), "gone")
		k.calls.Wait()
		if len(k.answers) != 1 {
			t.Errorf("expired answers are kept: %v", k.answers)
		}
		if got := calls(); !slices.Equal(got, []string{"worker-1", "worker-1"}) {
			t.Errorf("calls: %v", got)
		}
	})
}

// The number of parallel calls is limited, each node is called once, and calls end with their context.
func TestManyKubelets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes = 3 * parallelCalls
		k, calls := fakeKubelets()
		ctx, cancel := context.WithCancel(t.Context())
		askAll := func() {
			for i := range 2 * nodes {
				k.lookUp(ctx, fmt.Sprintf("node-%03d", i%nodes))
			}
		}
		began := time.Now()
		askAll()
		if got := len(calls()); got != nodes || time.Since(began) != 3*time.Second {
			t.Errorf("%d calls in %s", got, time.Since(began))
		}
		wait(ctx, answerValid)
		began = time.Now()
		askAll()
		cancel()
		if calls(); time.Since(began) != 0 {
			t.Errorf("calls ended %s after their context", time.Since(began))
		}
	})
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main([]string{"--version"}, &out, &errs); code != exitNothingPending || !strings.HasPrefix(out.String(), "approve version ") || errs.Len() > 0 {
		t.Errorf("%d, %q, %q", code, &out, &errs)
	}
}
