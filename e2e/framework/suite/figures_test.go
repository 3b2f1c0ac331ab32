// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocument(t *testing.T) {
	rows := []Row{{What: "speed", Measured: "1 s", Bound: "< 2 s", Compared: "-", Held: true}, {What: "size", Measured: "9", Bound: "< 5", Compared: "7"}}
	const begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
	got, err := Bench.Document([]byte("# Title\n"+begin+"\nold\n"+end+"\nafter\n"), rows, "a machine", false)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n" + begin + "\n\nMachine: a machine\n\n| what | measured | bound | held | compared with |\n|---|---|---|---|---|\n" +
		"| speed | 1 s | < 2 s | yes | - |\n| size | 9 | < 5 | **no** | 7 |\n\n" + end + "\nafter\n"
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
	var out bytes.Buffer
	if err := Print(&out, []Row{{What: "speed", Measured: "1 s", Bound: "< 2 s", Held: true}, {What: "a longer name", Measured: "9", Bound: "< 5"}}); err != nil {
		t.Fatal(err)
	}
	want := "WHAT           MEASURED  BOUND  HELD\nspeed          1 s       < 2 s  yes\na longer name  9         < 5    NO\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMachine(t *testing.T) {
	if got := Machine(); strings.Contains(got, "unknown") || !strings.Contains(got, "cores") {
		t.Errorf("machine is %q", got)
	}
}
