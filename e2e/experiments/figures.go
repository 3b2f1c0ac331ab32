// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"slices"
	"time"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
)

func record(e *kindtarget.Env, name string, rows []bench.Row) error {
	if err := bench.Print(e.Progress, rows); err != nil {
		return fmt.Errorf("print the figures of %s: %w", name, err)
	}
	return e.WriteFigure(name+".json", rows)
}

// outageRow summarises outages, which bound limits.
func outageRow(what string, outages []time.Duration, bound time.Duration) bench.Row {
	sorted := slices.Sorted(slices.Values(outages))
	longest := sorted[len(sorted)-1]
	measured := "outage " + seconds(longest)
	if len(sorted) > 1 {
		measured = fmt.Sprintf("outage p50 %s, p90 %s, max %s of %d", seconds(rank(sorted, 50)), seconds(rank(sorted, 90)), seconds(longest), len(sorted))
	}
	return bench.Row{What: what, Measured: measured, Bound: "max " + seconds(bound), Compared: "-", Held: longest <= bound}
}

func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (percent*len(sorted)+99)/100-1)]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
