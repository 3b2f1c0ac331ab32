// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"

	"github.com/solonode/sno/e2e/framework/suite"
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

// booted are the times of specs that run in any order, and are compared at the end.
var booted struct{ allInOne, kubeadm bootTimes }

// A missed bound is no failure: it depends on the machine's load.
var _ = AfterSuite(func() {
	if booted.allInOne.pod > 0 {
		suite.Record(suite.Installations, allInOneRows(booted.allInOne, booted.kubeadm)...)
	}
})

// recordInstallation records a row without a bound.
func recordInstallation(what, format string, args ...any) {
	suite.Record(suite.Installations, suite.Figure(what, format, args...))
}

// phaseRows returns the rows of a step of bootstrap in place, with the phases of its command.
func phaseRows(step string, took time.Duration, phases []phase) []suite.Row {
	what := "Bootstrap in place, " + step
	rows := []suite.Row{suite.Figure(what, "%s", seconds(took))}
	var short time.Duration
	for _, p := range phases {
		if p.took < noticeable {
			short += p.took
			continue
		}
		rows = append(rows, suite.Figure(what+", phase "+p.name, "%s", seconds(p.took)))
	}
	return append(rows, suite.Figure(what+", all other phases", "%s", seconds(short)))
}

// allInOneRows compares with kubeadm if that has been measured.
func allInOneRows(ours, kubeadm bootTimes) []suite.Row {
	memory := suite.Figure("All in one, memory of the machine at rest", "%s", mebibytes(ours.memory))
	if kubeadm.memory > 0 {
		memory.Compared = "kubeadm " + mebibytes(kubeadm.memory)
	}
	return []suite.Row{
		compared("All in one, from the start of the machine to a Ready node", ours.ready, kubeadm.ready),
		compared("All in one, from the start of the machine to a running pod", ours.pod, kubeadm.pod), memory,
	}
}

func compared(what string, ours, kubeadm time.Duration) suite.Row {
	row := suite.Figure(what, "%s", seconds(ours))
	if kubeadm > 0 {
		ratio := ours.Seconds() / kubeadm.Seconds()
		row.Bound = fmt.Sprintf("max %.1f times kubeadm's", maxBootRatio)
		row.Compared, row.Held = fmt.Sprintf("kubeadm %s, ratio %.2f", seconds(kubeadm), ratio), ratio <= maxBootRatio
	}
	return row
}

// start is how a control plane started: the time from its first container until it was ready, and the Secrets in etcd.
type start struct {
	took    time.Duration
	secrets int
}

func renderedRows(ours, kubeadm start, cost rendering) []suite.Row {
	ratio := ours.took.Seconds() / kubeadm.took.Seconds()
	return []suite.Row{
		{
			What:     "Static pods of sno-render on a real kubelet, from the first container to /readyz",
			Measured: suite.Seconds(ours.took), Bound: fmt.Sprintf("max %.1f times kubeadm's", maxStartRatio),
			Compared: fmt.Sprintf("kubeadm %s, ratio %.2f", suite.Seconds(kubeadm.took), ratio), Held: ratio <= maxStartRatio,
		}, {
			What: "sno-render, all four components", Measured: cost.String(), Bound: fmt.Sprintf("max %s, %d MiB", suite.Seconds(maxRendering), maxMemory/mebi),
			Compared: "-", Held: cost.took < maxRendering && cost.memory < maxMemory,
		}, {
			What: "Secrets in etcd that were encrypted by their first write", Measured: fmt.Sprintf("%d of %d", ours.secrets, ours.secrets),
			Bound: "all", Compared: fmt.Sprintf("kubeadm 0 of %d", kubeadm.secrets), Held: true,
		},
	}
}

// rendering is the cost of a process of sno-render: its time, its processor time, which does not depend on load, and its
// maximum memory in bytes.
type rendering struct {
	took, processor time.Duration
	memory          int64
}

func (r rendering) String() string {
	return fmt.Sprintf("%s (%s of processors), %d MiB", suite.Seconds(r.took), suite.Seconds(r.processor), r.memory/mebi)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func mebibytes(bytes int) string { return fmt.Sprintf("%d MiB", bytes/mebi) }

// kubernetesVersion returns the version as flags take it.
func kubernetesVersion() string { return strings.TrimPrefix(version, "v") }

// A row is compared by what a document shows.
func TestRows(t *testing.T) {
	ours, kubeadm := bootTimes{9 * time.Second, 11 * time.Second, 900 * mebi}, bootTimes{10 * time.Second, 10 * time.Second, 800 * mebi}
	rendered := func(took time.Duration, cost rendering) []suite.Row {
		return renderedRows(start{took, 5}, start{10 * time.Second, 2}, cost)
	}
	good := rendering{time.Second, 2 * time.Second, 100 * mebi}
	const ready, pod, memory, began = "All in one, from the start of the machine to a Ready node: ", "All in one, from the start of the machine to a running pod: ",
		"All in one, memory of the machine at rest: 900 MiB; ", "Static pods of sno-render on a real kubelet, from the first container to /readyz: "
	for name, test := range map[string]struct {
		rows []suite.Row
		want []string
	}{
		"alone": {allInOneRows(ours, bootTimes{}), []string{ready + "9.0 s; -; -", pod + "11.0 s; -; -", memory + "-; -"}},
		"compared": {allInOneRows(ours, kubeadm), []string{
			ready + "9.0 s; max 1.0 times kubeadm's; kubeadm 10.0 s, ratio 0.90", pod + "11.0 s; max 1.0 times kubeadm's; kubeadm 10.0 s, ratio 1.10; NO", memory + "-; kubeadm 800 MiB",
		}},
		"in place": {phaseRows("live", 20*time.Second, []phase{{"render", 3 * time.Second}, {"a", 200 * time.Millisecond}, {"b", 100 * time.Millisecond}}), []string{
			"Bootstrap in place, live: 20.0 s; -; -", "Bootstrap in place, live, phase render: 3.0 s; -; -", "Bootstrap in place, live, all other phases: 0.3 s; -; -",
		}},
		"at the bound": {rendered(11*time.Second, good), []string{
			began + "11.00 s; max 1.1 times kubeadm's; kubeadm 10.00 s, ratio 1.10", "sno-render, all four components: 1.00 s (2.00 s of processors), 100 MiB; max 3.00 s, 256 MiB; -",
			"Secrets in etcd that were encrypted by their first write: 5 of 5; all; kubeadm 0 of 2",
		}},
		"above it":             {rendered(11010*time.Millisecond, good)[:1], []string{began + "11.01 s; max 1.1 times kubeadm's; kubeadm 10.00 s, ratio 1.10; NO"}},
		"rendering is slow":    {rendered(0, rendering{3 * time.Second, 0, 0})[1:2], []string{"sno-render, all four components: 3.00 s (0.00 s of processors), 0 MiB; max 3.00 s, 256 MiB; -; NO"}},
		"rendering needs much": {rendered(0, rendering{0, 0, 256 * mebi})[1:2], []string{"sno-render, all four components: 0.00 s (0.00 s of processors), 256 MiB; max 3.00 s, 256 MiB; -; NO"}},
	} {
		var got []string
		for _, row := range test.rows {
			held := map[bool]string{false: "; NO"}[row.Held]
			got = append(got, row.What+": "+row.Measured+"; "+row.Bound+"; "+row.Compared+held)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
