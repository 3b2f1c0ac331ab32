// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/e2e/bench"
)

// Reports are those of one run, by the methods' names.
type Reports map[string]Report

// Print writes a line for every step, and for every phase of the command that ran in it.
func (r Reports) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, "WAY\tSTEP\tPHASE\tTIME")
	errs := []error{err}
	for _, way := range Methods() {
		for _, s := range r[way.Name].Steps {
			_, err := fmt.Fprintf(w, "%s\t%s\t\t%s\n", way.Name, s.Step, seconds(s.Duration))
			errs = append(errs, err)
			for _, p := range s.Phases {
				_, err := fmt.Fprintf(w, "\t\t%s\t%s\n", p.Step, seconds(p.Duration))
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}

const (
	kibi = 1 << 10
	mebi = 1 << 20
	// noticeable is the duration from which a phase has a row.
	noticeable = 500 * time.Millisecond
)

// Rows returns the measurements as rows.
func (r Reports) Rows() []bench.Row {
	var rows []bench.Row
	if a, ran := r[AllInOne.Name]; ran && a.Pod > 0 {
		rows = append(rows, r.comparedRow("All in one, from the start of the machine to a Ready node", a.Ready, r[Kubeadm.Name].Ready),
			r.comparedRow("All in one, from the start of the machine to a running pod", a.Pod, r[Kubeadm.Name].Pod))
		if a.Memory > 0 {
			row := bench.Row{What: "All in one, memory of the machine at rest", Measured: fmt.Sprintf("%d MiB", a.Memory/mebi), Bound: "-", Compared: "-", Held: true}
			if k := r[Kubeadm.Name]; k.Memory > 0 {
				row.Compared = fmt.Sprintf("kubeadm %d MiB", k.Memory/mebi)
			}
			rows = append(rows, row)
		}
	}
	plain := func(what, measured string) {
		rows = append(rows, bench.Row{What: what, Measured: measured, Bound: "-", Compared: "-", Held: true})
	}
	if renewal := r[AllInOneRenewal.Name].Renewal; renewal > 0 {
		plain("All in one, no API while certificates are renewed", seconds(renewal))
	}
	p := r[InPlace.Name]
	for _, s := range p.Steps {
		if len(s.Phases) == 0 {
			continue
		}
		plain("Bootstrap in place, "+s.Step, seconds(s.Duration))
		var short time.Duration
		for _, one := range s.Phases {
			if one.Duration < noticeable {
				short += one.Duration
				continue
			}
			plain("Bootstrap in place, "+s.Step+", phase "+one.Step, seconds(one.Duration))
		}
		plain("Bootstrap in place, "+s.Step+", all other phases", seconds(short))
	}
	if len(p.Configs) == 2 {
		plain("Bootstrap in place, configs", fmt.Sprintf("live system %.1f KiB, installed node %.1f MiB",
			float64(p.Configs[0])/kibi, float64(p.Configs[1])/mebi))
	}
	for i, what := range []string{"when the live system restarts into the node", "when the node restarts"} {
		if i < len(p.Restarts) {
			plain("Bootstrap in place, no API "+what, seconds(p.Restarts[i]))
		}
	}
	if p.Memory > 0 {
		plain("Bootstrap in place, memory of the machine at rest", fmt.Sprintf("%d MiB", p.Memory/mebi))
	}
	return rows
}

// MaxRatio limits the time of the all-in-one node relative to kubeadm's.
const MaxRatio = 1.0

func (r Reports) comparedRow(what string, ours, kubeadm time.Duration) bench.Row {
	row := bench.Row{What: what, Measured: seconds(ours), Bound: "-", Compared: "-", Held: true}
	if kubeadm > 0 {
		ratio := ours.Seconds() / kubeadm.Seconds()
		row.Bound = fmt.Sprintf("max %.1f times kubeadm's", MaxRatio)
		row.Compared, row.Held = fmt.Sprintf("kubeadm %s, ratio %.2f", seconds(kubeadm), ratio), ratio <= MaxRatio
	}
	return row
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
