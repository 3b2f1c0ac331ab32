// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPoints(t *testing.T) {
	const length = 3 * time.Second
	c := PowerCuts{PerPhase: 100, Seed: 7}
	all := c.points(0, length)
	at := make([]time.Duration, len(all))
	for i, p := range all {
		at[i] = p.at
	}
	if len(all) != c.PerPhase || !slices.IsSorted(at) || at[0] < 0 || at[0] > length/4 || at[99] < length*3/4 || at[99] >= length {
		t.Errorf("100 points in %s: %v", length, at)
	}
	if !reflect.DeepEqual(all, c.points(0, length)) {
		t.Error("the same start value gives other points")
	}
	if reflect.DeepEqual(all, c.points(1, length)) || reflect.DeepEqual(all, PowerCuts{PerPhase: 100, Seed: 8}.points(0, length)) {
		t.Error("another phase and another start value give the same points")
	}
}

func TestPrintPoints(t *testing.T) {
	var out strings.Builder
	if err := printPoints(&out, []point{{at: 1900 * time.Millisecond, ran: "before the command", after: complete}, {at: 20 * time.Second, ran: "join", after: "good"}}); err != nil {
		t.Fatal(err)
	}
	want := "CUT AT  IN                  AFTERWARDS\n1.9 s   before the command  the disk is complete\n20.0 s  join                good\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// A failed unit is accepted only if its output contains an advice.
func TestAdvises(t *testing.T) {
	for text, want := range map[unitFailure]bool{
		"etcd has no data, and its only snapshot is damaged: install the node again: snapshot /a: 3 bytes": true,
		"phase render: change what the error names, and run the same command again":                        true,
		"phase api: connection refused": false, "": false,
	} {
		if text.advises() != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
