// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/bench"
)

func (k *Kills) rows() []bench.Row {
	if k == nil || len(k.Settled) == 0 {
		return nil
	}
	slices.Sort(k.Settled)
	return []bench.Row{
		{
			What: "Kills of the controllers, by moment", Bound: "-", Compared: "-", Held: true,
			Measured: fmt.Sprintf("%d in %d changes of the cluster: %s", total(k.ByMode), k.Rounds, numbers(k.ByMode)),
		},
		{What: "Kills by change", Measured: numbers(byKind(k.ByChange)), Bound: "-", Compared: "-", Held: true},
		{
			What: "From the last kill of a change to the final state", Bound: "-", Compared: "-", Held: true,
			Measured: fmt.Sprintf("median %s, max %s", seconds(k.Settled[len(k.Settled)/2]), seconds(k.Settled[len(k.Settled)-1])),
		},
		{
			What: "Writes of the killed controllers, without reports", Bound: "0 twice", Compared: "-", Held: true,
			Measured: fmt.Sprintf("%d, of which %d changed something; %d repeated what was in place", k.Writes, k.Effective, k.Needless),
		},
	}
}

func (b *BadServer) rows() []bench.Row {
	if b == nil {
		return nil
	}
	return []bench.Row{
		{
			What: "Requests to a bad API server", Measured: fmt.Sprintf("%s, %d flips: %s", b.Time, b.Flips, b.Requests), Bound: "-", Compared: "-", Held: true,
		},
		{
			What: "of one client for one object, in " + refusal.String() + " in which it refuses all writes", Bound: fmt.Sprint(mostRetries),
			Measured: b.Busiest.String(), Compared: "-", Held: b.Busiest.Number <= mostRetries,
		},
		{
			What: "Its faults", Measured: numbers(b.Faults), Bound: "-", Compared: "-", Held: true,
		},
		{
			What: "Writes that it carried out without an answer", Measured: fmt.Sprintf("%d; %d conditions repeated", b.Lost, b.Reported),
			Bound: "0 patches repeated", Compared: "-", Held: true,
		},
		{
			What: "From its end to the final state", Measured: seconds(b.Settled), Bound: "< " + recovery.String(), Compared: "-",
			Held: b.Settled < recovery,
		},
	}
}

func (l *Leaders) rows() []bench.Row {
	if l == nil {
		return nil
	}
	return []bench.Row{
		{
			What: "Two leaders: writes of the former one after it was continued", Bound: "0 overwritten", Compared: "-", Held: l.Unbound == 0,
			Measured: fmt.Sprintf("%d times: %d with conditions, %d refused; %d patches reverted, %d objects deleted again",
				l.Times, l.Requests, l.Refused, l.Writes, l.Created),
		},
		{What: "Two leaders: effective patches of the former one while both follow flips", Measured: fmt.Sprint(l.Together), Bound: "-", Compared: "-", Held: true},
	}
}

// byKind sums up by the first word, such as flip.
func byKind(changes map[string]int) map[string]int {
	kinds := map[string]int{}
	for name, n := range changes {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] += n
	}
	return kinds
}

func numbers(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
