// SPDX-License-Identifier: Apache-2.0

//go:build unix

package traffic

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	arrived := at(5000)
	for line, want := range map[string]Sample{
		"ok":                               {Sent: arrived, Done: arrived},
		"ok 0.250":                         {Sent: at(4750), Done: arrived},
		"failed":                           {Sent: arrived, Done: arrived, Problem: "failed"},
		"failed 1.000 connection refused":  {Sent: at(4000), Done: arrived, Problem: "connection refused"},
		"failed connection refused":        {Sent: arrived, Done: arrived, Problem: "connection refused"},
		"curl: (7) Failed to connect":      {Sent: arrived, Done: arrived, Problem: "curl: (7) Failed to connect"},
		"okay, that is not the first word": {Sent: arrived, Done: arrived, Problem: "okay, that is not the first word"},
	} {
		if diff := cmp.Diff(want, parse(line, arrived)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	for _, sample := range []Sample{{Sent: at(0), Done: at(250)}, {Sent: at(0), Done: at(250), Problem: "no\nroute"}} {
		var text strings.Builder
		if err := sample.Write(&text); err != nil || strings.Count(text.String(), "\n") != 1 {
			t.Errorf("%q, %v", text.String(), err)
		}
		if got := parse(text.String(), at(250)); got.Sent != at(0) || (got.Problem == "") != (sample.Problem == "") {
			t.Errorf("%q becomes %+v", text.String(), got)
		}
	}
}

func TestOutside(t *testing.T) {
	const soon = 20 * time.Second
	o := Listen(t.Context(), `sh -c 'test "$0 $1" = "http://canary.invalid/ 127.0.0.1:1" && while sleep 0.05; do echo ok 0.001; done'`,
		Endpoint{URL: "http://canary.invalid/", Address: "127.0.0.1:1"}, nil)
	if err := o.WaitAnswered(t.Context(), 4*Interval, soon); err != nil {
		t.Error(err)
	}
	samples := o.Stop()
	if len(samples) < 4 || len(Outages(samples)) > 0 {
		t.Errorf("requests: %+v", samples)
	}
	o = Listen(t.Context(), "echo ok; exit 3;", Endpoint{URL: "http://canary.invalid/"}, nil)
	defer o.Stop()
	if err := o.WaitAnswered(t.Context(), Interval, 10*Interval); !errors.Is(err, ErrLost) {
		t.Errorf("a client that ends: %v", err)
	}
	if outages := Outages(o.Stop()); len(outages) != 1 || !strings.Contains(outages[0].Problem, "exit status 3") {
		t.Errorf("a client that ends: %+v", outages)
	}
}
