// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/conformance/traffic"
)

// Only the option with tcp_migrate_req is required to lose nothing.
func TestJudge(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	samples := func(problems ...string) []traffic.Sample {
		var all []traffic.Sample
		for i, problem := range problems {
			all = append(all, traffic.Sample{Sent: at(float64(i)), Done: at(float64(i) + 0.25), Problem: problem})
		}
		return all
	}
	good, bad := samples("", "", ""), samples("", "reset", "")
	cut := func(from, to float64, failed int) traffic.Outage {
		return traffic.Outage{From: at(from), To: at(to), Failed: failed}
	}
	deleted := []time.Time{at(0), at(10)}
	drainedCuts := []traffic.Outage{cut(3, 3.1, 0), cut(13.5, 13.6, 0)}
	for _, test := range []struct {
		name                 string
		load                 load
		err                  error
		requests, connection string
	}{
		{"nothing lost", load{good, good, good, drainedCuts, deleted, at(20)}, nil,
			"lost http 0 of 3, https 0 of 3; longest outage 0.00 s; slowest answer 0.25 s", "closed 2 times, 0 failed attempts, without it for at most 0.10 s"},
		{"a request over HTTP", load{bad, good, good, drainedCuts, deleted, at(20)}, errLost, "lost http 1 of 3, https 0 of 3; longest outage 1.00 s", ""},
		{"a request over HTTPS", load{good, bad, good, drainedCuts, deleted, at(20)}, errLost, "lost http 0 of 3, https 1 of 3; longest outage 1.00 s", ""},
		{"closed before the drain has ended", load{good, good, good, []traffic.Outage{cut(3, 3, 0), cut(12.9, 13, 0)}, deleted, at(20)}, errCut, "", ""},
		{"closed twice in a drain", load{good, good, good, append(drainedCuts, cut(14, 14, 0)), deleted, at(20)}, errCut, "", "closed 3 times"},
		{"not opened at once", load{good, good, good, []traffic.Outage{cut(3, 4, 2), cut(13, 13, 0)}, deleted, at(20)}, errCut, "", "2 failed attempts, without it for at most 1.00 s"},
	} {
		rows, err := test.load.judge(sharing{name: "shared", required: true})
		if !errors.Is(err, test.err) || test.err == nil && err != nil || len(rows) != 2 ||
			!strings.Contains(rows[0].Measured, test.requests) || !strings.Contains(rows[1].Measured, test.connection) ||
			(rows[0].Held && rows[1].Held) != (test.err == nil) {
			t.Errorf("%s: %v, %+v", test.name, err, rows)
		}
		if rows, err := test.load.judge(sharing{name: "today"}); err != nil || !rows[0].Held || !rows[1].Held {
			t.Errorf("%s, not required: %v, %+v", test.name, err, rows)
		}
	}
}
