// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/bench"
)

func TestAPIOutageRow(t *testing.T) {
	outages := []time.Duration{3 * time.Second, 0, time.Second, 2 * time.Second, 2500 * time.Millisecond}
	want := bench.Row{What: "rollout", Measured: "outage p50 2.00 s, p90 3.00 s, max 3.00 s of 5", Bound: "max 3.00 s", Compared: "-", Held: true}
	if diff := cmp.Diff(want, outageRow("rollout", outages, 3*time.Second)); diff != "" {
		t.Error(diff)
	}
	if row := outageRow("rollout", outages, 2999*time.Millisecond); row.Held {
		t.Errorf("longer than its bound: %+v", row)
	}
	if row := outageRow("one", []time.Duration{time.Second}, time.Second); row.Measured != "outage 1.00 s" {
		t.Errorf("one: %+v", row)
	}
}
