package outside

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/patch/patchtest"
)

// What a person and a script read, for the findings of one look.
func TestReport(t *testing.T) {
	t.Parallel()
	patchtest.Golden(t, "testdata", func(t *testing.T, input fs.FS) map[string]string {
		text, err := fs.ReadFile(input, "findings.json")
		if err != nil {
			t.Fatal(err)
		}
		var given struct {
			Findings []finding
			Partial  bool
		}
		if err := json.Unmarshal(text, &given); err != nil {
			t.Fatal(err)
		}
		now := func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
		got := map[string]string{}
		for _, format := range []string{formatTable, formatJSON} {
			var out bytes.Buffer
			r, s := newReport(format, &out, "nodes.yaml", now), summary{Complete: !given.Partial}
			for _, f := range given.Findings {
				s.add(f)
				r.add(f)
			}
			if err := r.end(s); err != nil {
				t.Fatal(err)
			}
			got[format+".txt"] = out.String()
		}
		return got
	})
}

// A flood is counted, not listed; what was approved is listed all the same.
func TestReportFlood(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r, s := newReport(formatTable, &out, "nodes.yaml", time.Now), summary{Complete: true}
	for i := range 10000 {
		f := finding{Request: fmt.Sprintf("csr-%d", i), Outcome: pending, Created: time.Now()}
		if f.Reason = "NotInInventory"; i == 9999 {
			f.Outcome = approved
		}
		s.add(f)
		r.add(f)
	}
	if err := r.end(s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"csr-9999", "... and 9899 more that stay pending: NotInInventory\n", "1 approved, 9999 left pending.\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if n := strings.Count(out.String(), "\n"); n > 600 {
		t.Errorf("%d lines", n)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errNoAnswer }

// An answer that cannot be written is an error.
func TestReportBroken(t *testing.T) {
	t.Parallel()
	for _, format := range []string{formatTable, formatJSON} {
		if err := newReport(format, brokenPipe{}, "", time.Now).end(summary{}); !errors.Is(err, errNoAnswer) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"worker-1":                   "worker-1",
		`it is "worker-1"`:           `it is "worker-1"`,
		"worker-1\r\x1b[2Kapproved":  `worker-1\r\x1b[2Kapproved`,
		"w\u043erker\u202e":          `w\u043erker\u202e`,
		"a\xffb":                     `a\ufffdb`,
		"it's":                       "it's",
		strings.Repeat("x", longest): strings.Repeat("x", longest),
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := plain(strings.Repeat("x", 5000)); len(got) > longest+10 || !strings.HasSuffix(got, "...") {
		t.Errorf("a long text is shown as %q", got)
	}
}

// Flags that make no sense are told before anything is read.
func TestParse(t *testing.T) {
	t.Parallel()
	good := []string{"--inventory=nodes.yaml", "--once"}
	for says, args := range map[string][]string{
		"--inventory is missing":             {"--once"},
		"give one of --once and --watch":     {"--inventory=nodes.yaml"},
		"one of --once and":                  append(good, "--watch"),
		`unexpected argument "now"`:          append(good, "now"),
		`-o "yaml" is neither`:               append(good, "-o=yaml"),
		"--max-approvals=0 is not":           append(good, "--max-approvals=0"),
		"--max-approvals-window=2h0m0s is":   append(good, "--max-approvals-window=2h"),
		"--max-age=0s is not positive":       append(good, "--max-age=0"),
		"--every=1ms is shorter":             append(good, "--every=1ms"),
		"--timeout=-1s is not":               append(good, "--timeout=-1s"),
		"flag provided but not defined: -go": append(good, "--go"),
	} {
		var out bytes.Buffer
		if _, err := parse(args, &out); !errors.Is(err, errUsage) || !strings.Contains(out.String(), says) {
			t.Errorf("%v: %v, said %q; want %q", args, err, &out, says)
		}
		if code := Main(args, nil, &out); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "Exit codes: 0 ") {
		t.Errorf("help: %v\n%s", err, &help)
	}
	if o, err := parse(slices.Clip(good), &help); err != nil || o.limit.Approvals != 50 || o.limit.Window != 10*time.Minute || o.policy.MaxAge != 2*time.Hour || o.policy.BootstrapTokens {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

// Every reason that is not a verdict's is in the README.
func TestReadmeReasons(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{
		reasonContested, reasonLimitReached, reasonTooManyOfNode, reasonAskingKubelet, reasonKubeletUnreachable, reasonNoAuthority, reasonChanging,
	} {
		if !strings.Contains(string(readme), "| `"+reason+"` |") {
			t.Errorf("README.md lacks %s", reason)
		}
	}
}
