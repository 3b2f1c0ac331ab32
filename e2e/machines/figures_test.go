// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/bench"
)

const (
	mebi = 1 << 20
	// noticeable is the duration from which a phase has a row.
	noticeable = 500 * time.Millisecond

	// maxBootRatio limits the time of the all-in-one node relative to kubeadm's.
	maxBootRatio = 1.0
	// maxStartRatio limits the time of the rendered control plane from its first container until it is ready, relative to
	// kubeadm's.
	maxStartRatio = 1.1
	// maxRendering and maxMemory limit the time and the memory of one process of sno-render that renders all components.
	maxRendering = 3 * time.Second
	maxMemory    = 256 * mebi
)

// figures are what the specs have measured.
var figures measurements

type measurements struct {
	// rows are those without a comparison.
	rows []bench.Row
	// allInOne and kubeadm are compared, and so are the starts of both methods.
	allInOne, kubeadm         bootTimes
	kubeadmStarts, starts     []time.Duration
	cost                      rendering
	kubeadmSecrets, encrypted int
}

func (f *measurements) add(what, measured string) {
	f.rows = append(f.rows, bench.Row{What: what, Measured: measured, Bound: "-", Compared: "-", Held: true})
}

// addPhases adds a step of bootstrap in place, with the phases of its command.
func (f *measurements) addPhases(step string, took time.Duration, phases []phase) {
	what := "Bootstrap in place, " + step
	f.add(what, seconds(took))
	var short time.Duration
	for _, p := range phases {
		if p.took < noticeable {
			short += p.took
			continue
		}
		f.add(what+", phase "+p.name, seconds(p.took))
	}
	f.add(what+", all other phases", seconds(short))
}

func (f *measurements) addKubeadm(start time.Duration, boot bootTimes, secrets int) {
	f.kubeadmStarts = append(f.kubeadmStarts, start)
	f.kubeadmSecrets = secrets
	if f.kubeadm.pod == 0 {
		f.kubeadm = boot
	}
}

func (f *measurements) addRendered(start time.Duration, cost rendering, secrets int) {
	f.starts = append(f.starts, start)
	f.encrypted = secrets
	memory := max(f.cost.memory, cost.memory)
	if f.cost.took == 0 || cost.took < f.cost.took {
		f.cost = cost
	}
	f.cost.memory = memory
}

// skipIfHeld skips a further round of a comparison that has met its bounds.
func (f *measurements) skipIfHeld() {
	if rows := f.rendered(); len(rows) > 0 && len(f.starts) == len(f.kubeadmStarts) && !slices.ContainsFunc(rows, func(r bench.Row) bool { return !r.Held }) {
		Skip("the bounds are met")
	}
}

// installations returns the rows of installed machines.
func (f *measurements) installations() []bench.Row {
	var rows []bench.Row
	if a := f.allInOne; a.pod > 0 {
		rows = append(rows, compared("All in one, from the start of the machine to a Ready node", a.ready, f.kubeadm.ready),
			compared("All in one, from the start of the machine to a running pod", a.pod, f.kubeadm.pod))
		if a.memory > 0 {
			row := bench.Row{What: "All in one, memory of the machine at rest", Measured: mebibytes(a.memory), Bound: "-", Compared: "-", Held: true}
			if f.kubeadm.memory > 0 {
				row.Compared = "kubeadm " + mebibytes(f.kubeadm.memory)
			}
			rows = append(rows, row)
		}
	}
	return append(rows, f.rows...)
}

func compared(what string, ours, kubeadm time.Duration) bench.Row {
	row := bench.Row{What: what, Measured: seconds(ours), Bound: "-", Compared: "-", Held: true}
	if kubeadm > 0 {
		ratio := ours.Seconds() / kubeadm.Seconds()
		row.Bound = fmt.Sprintf("max %.1f times kubeadm's", maxBootRatio)
		row.Compared, row.Held = fmt.Sprintf("kubeadm %s, ratio %.2f", seconds(kubeadm), ratio), ratio <= maxBootRatio
	}
	return row
}

// rendered returns the rows of sno-render, with the shortest times of all rounds.
func (f *measurements) rendered() []bench.Row {
	if len(f.starts) == 0 || len(f.kubeadmStarts) == 0 {
		return nil
	}
	ours, kubeadm := slices.Min(f.starts), slices.Min(f.kubeadmStarts)
	ratio := ours.Seconds() / kubeadm.Seconds()
	return []bench.Row{
		{
			What:     "Static pods of sno-render on a real kubelet, from the first container to /readyz",
			Measured: fmt.Sprintf("%.2f s, best of %d", ours.Seconds(), len(f.starts)), Bound: fmt.Sprintf("max %.1f times kubeadm's", maxStartRatio),
			Compared: fmt.Sprintf("kubeadm %.2f s, ratio %.2f", kubeadm.Seconds(), ratio), Held: ratio <= maxStartRatio,
		}, {
			What: "sno-render, all four components", Measured: f.cost.String(),
			Bound:    fmt.Sprintf("max %.2f s, %d MiB", maxRendering.Seconds(), maxMemory/mebi),
			Compared: "-", Held: f.cost.took < maxRendering && f.cost.memory < maxMemory,
		}, {
			What: "Secrets in etcd that were encrypted by their first write", Measured: fmt.Sprintf("%d of %d", f.encrypted, f.encrypted),
			Bound: "all", Compared: fmt.Sprintf("kubeadm 0 of %d", f.kubeadmSecrets), Held: true,
		},
	}
}

func (r rendering) String() string {
	return fmt.Sprintf("%.2f s (%.2f s of processors), %d MiB", r.took.Seconds(), r.processor.Seconds(), r.memory/mebi)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func mebibytes(bytes int) string { return fmt.Sprintf("%d MiB", bytes/mebi) }

func sizes(live int64, node int) string {
	return fmt.Sprintf("live system %.1f KiB, installed node %.1f MiB", float64(live)/(1<<10), float64(node)/mebi)
}

// kubernetesVersion returns the version as flags take it.
func kubernetesVersion() string { return strings.TrimPrefix(version, "v") }

var _ = ReportAfterSuite("figures", func(Report) {
	installations, rendered := figures.installations(), figures.rendered()
	if len(installations)+len(rendered) == 0 {
		return
	}
	Expect(bench.Print(os.Stdout, slices.Concat(installations, rendered))).To(Succeed())
	if *write == "" {
		return
	}
	document, err := os.ReadFile(*write)
	Expect(err).NotTo(HaveOccurred())
	for table, rows := range map[bench.Table][]bench.Row{bench.Installations: installations, bench.RealKubelets: rendered} {
		if len(rows) > 0 {
			var failed error
			document, failed = table.Document(document, rows, bench.Machine(), true)
			err = errors.Join(err, failed)
		}
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(*write, document, 0o644)).To(Succeed())
})
