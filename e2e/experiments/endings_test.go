// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadEnding(t *testing.T) {
	at := func(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }
	for name, test := range map[string]struct {
		record string
		want   ending
		err    error
	}{
		"done":            {"10.0 START\n11.0 HOOK\n11.5 TERM\n12.0 WORK\n12.25 END\n", ending{term: at(11.5), last: at(12.25), hook: at(11), end: at(12.25)}, nil},
		"killed at work":  {"10.0 START\n11.5 TERM\n12.0 WORK\n", ending{term: at(11.5), last: at(12)}, nil},
		"killed midline":  {"10.0 START\n11.5 TERM\n12.0 WORK\n12.", ending{term: at(11.5), last: at(12)}, nil},
		"not ended":       {"10.0 START\n", ending{last: at(10)}, errRecord},
		"nothing written": {"", ending{}, errRecord},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readEnding(test.record)
			if !errors.Is(err, test.err) {
				t.Fatalf("%v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(ending{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndsInOrder(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	pod := func(from int) ending {
		return ending{hook: second(from), term: second(from + 1), last: second(from + 5), end: second(from + 5)}
	}
	for name, test := range map[string]struct {
		change func(*ends)
		err    error
	}{
		"one after the other":       {func(*ends) {}, nil},
		"clocks that differ little": {func(e *ends) { e.critical = pod(4); e.critical.term = second(5).Add(-slack / 2) }, nil},
		"both at once":              {func(e *ends) { e.critical = pod(0) }, errGrace},
		"without a hook":            {func(e *ends) { e.ordinary.hook = time.Time{} }, errGrace},
		"critical without a hook":   {func(e *ends) { e.critical.hook = time.Time{} }, errGrace},
		"hook too late":             {func(e *ends) { e.ordinary.hook = second(2) }, errGrace},
		"ordinary one killed":       {func(e *ends) { e.ordinary.end = time.Time{} }, errGrace},
		"critical one killed":       {func(e *ends) { e.critical.end = time.Time{} }, errGrace},
	} {
		t.Run(name, func(t *testing.T) {
			e := ends{pod(0), pod(5)}
			test.change(&e)
			if err := e.inOrder(); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			if needless := e.needless(); errors.Is(needless, errNeedless) != (test.err == nil) {
				t.Errorf("without the configuration: %v", needless)
			}
		})
	}
	with := ends{pod(0), pod(5)}
	without := ends{ordinary: ending{term: second(1), last: second(3)}, critical: pod(0)}
	row := figures(without, with)[0]
	if row.Measured != "hook called, done after 4.00 s, critical pods terminated after it" || !row.Held ||
		row.Compared != "without the configuration: no hook, killed after 2.00 s, critical pods terminated with it" {
		t.Errorf("%+v", row)
	}
}
