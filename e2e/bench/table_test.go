// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	var sorted []time.Duration
	for i := range 50 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{0: 1, 2: 1, 50: 25, 98: 49, 99: 50, 100: 50} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("p%d of 1..50 is %d, want %d", p, got, want)
		}
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	rows := []Row{{What: "speed", Measured: "1 s", Bound: "< 2 s", Compared: "-", Held: true}, {What: "size", Measured: "9", Bound: "< 5", Compared: "7"}}
	document := "# Title\n" + Bench.begin() + "\nold\n" + Bench.end() + "\nafter\n"
	got, err := Bench.Document([]byte(document), rows, "a machine", false)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n" + Bench.begin() + "\n\nMachine: a machine\n\n| what | measured | bound | held | compared with |\n|---|---|---|---|---|\n" +
		"| speed | 1 s | < 2 s | yes | - |\n| size | 9 | < 5 | **no** | 7 |\n\n" + Bench.end() + "\nafter\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again, err := Bench.Document(got, rows, "a machine", false)
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("writing the same table again changes the document (%v)", err)
	}
	// Rows that were not measured this time stay, before the others.
	some, err := Bench.Document(got, []Row{{What: "speed", Measured: "3 s", Bound: "< 2 s", Compared: "-"}, {What: "new", Measured: "1", Held: true}}, "a machine", true)
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(want, "| speed | 1 s | < 2 s | yes | - |\n| size | 9 | < 5 | **no** | 7 |\n",
		"| size | 9 | < 5 | **no** | 7 |\n| speed | 3 s | < 2 s | **no** | - |\n| new | 1 |  | yes |  |\n", 1)
	if diff := cmp.Diff(want, string(some)); diff != "" {
		t.Errorf("a part of the table (-want +got):\n%s", diff)
	}
	if _, err := Bench.Document([]byte("# No markers\n"), rows, "m", false); !errors.Is(err, ErrMarkers) {
		t.Errorf("got %v, want ErrMarkers", err)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Print(&out, []Row{{What: "speed", Measured: "1 s", Bound: "< 2 s", Held: true}, {What: "a longer name", Measured: "9", Bound: "< 5"}}); err != nil {
		t.Fatal(err)
	}
	want := "WHAT           MEASURED  BOUND  HELD\nspeed          1 s       < 2 s  yes\na longer name  9         < 5    NO\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadMemory(t *testing.T) {
	t.Parallel()
	m, err := readMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if m.resident < mebi || m.peak < m.resident || m.anonymous > m.resident {
		t.Errorf("implausible memory of this process: %s", m)
	}
	if _, err := readMemory(-1); !errors.Is(err, errFigures) {
		t.Errorf("no such process: got %v", err)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	if got := Machine(); strings.Contains(got, "unknown") || !strings.Contains(got, "cores") {
		t.Errorf("machine is %q", got)
	}
}
