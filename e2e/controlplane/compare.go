// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/e2e/bench"
)

const (
	// MaxRatio limits the time of the rendered control plane from its first container until it is ready, relative to
	// kubeadm's.
	MaxRatio = 1.1
	// MaxRendering limits the time of one process of sno-render that renders all four components.
	MaxRendering = 3 * time.Second
	// MaxMemory limits the memory of that process, in bytes.
	MaxMemory = 256 << 20
)

// ErrPlainText means that a Secret is not encrypted in etcd, and ErrReadiness that kubeadm's control plane has more
// checks of readiness.
var (
	ErrPlainText = errors.New("not every Secret in etcd is encrypted")
	ErrReadiness = errors.New("kubeadm's API server has checks of its readiness that the rendered one lacks")
)

// Round is one measurement of both control planes, one after the other on separate machines.
type Round struct {
	Kubeadm, Rendered Result
	Rendering         Rendering
}

// Comparison is the rounds of a run.
type Comparison []Round

// best returns the shortest times, because load only makes them longer.
func (c Comparison) best() (kubeadm, rendered time.Duration) {
	shortest := func(of func(Round) time.Duration) time.Duration {
		var all []time.Duration
		for _, round := range c {
			all = append(all, of(round))
		}
		return slices.Min(all)
	}
	return shortest(func(r Round) time.Duration { return r.Kubeadm.Start.Took }), shortest(func(r Round) time.Duration { return r.Rendered.Start.Took })
}

func (c Comparison) ratio() float64 {
	kubeadm, rendered := c.best()
	return rendered.Seconds() / kubeadm.Seconds()
}

// rendering returns the shortest rendering, with the maximum memory of all.
func (c Comparison) rendering() Rendering {
	cost := c[0].Rendering
	for _, round := range c {
		memory := max(cost.Memory, round.Rendering.Memory)
		if round.Rendering.Took < cost.Took {
			cost = round.Rendering
		}
		cost.Memory = memory
	}
	return cost
}

// Rows returns the rows of all rounds.
func (c Comparison) Rows() []bench.Row {
	kubeadm, rendered := c.best()
	cost, last := c.rendering(), c[len(c)-1]
	rounds := fmt.Sprintf("best of %d", len(c))
	return []bench.Row{
		{
			What: "Static pods of sno-render on a real kubelet, from the first container to /readyz", Measured: seconds(rendered) + ", " + rounds,
			Bound:    fmt.Sprintf("max %.1f times kubeadm's", MaxRatio),
			Compared: fmt.Sprintf("kubeadm %s, ratio %.2f", seconds(kubeadm), c.ratio()), Held: c.ratio() <= MaxRatio,
		}, {
			What: "sno-render, all four components", Measured: cost.String(),
			Bound:    fmt.Sprintf("max %s, %d MiB", seconds(MaxRendering), MaxMemory/mebi),
			Compared: "-", Held: cost.Took < MaxRendering && cost.Memory < MaxMemory,
		}, {
			What: "Secrets in etcd that were encrypted by their first write", Measured: fmt.Sprintf("%d of %d", last.Rendered.Encrypted, last.Rendered.Secrets),
			Bound: "all", Compared: fmt.Sprintf("kubeadm %d of %d", last.Kubeadm.Encrypted, last.Kubeadm.Secrets), Held: last.Rendered.Encrypted == last.Rendered.Secrets,
		},
	}
}

// Missed returns the rows whose bound is not met. A bound of time is not an error, because it depends on the machine's
// load.
func (c Comparison) Missed() []bench.Row {
	return slices.DeleteFunc(c.Rows(), func(row bench.Row) bool { return row.Held })
}

// Err returns the faults of a control plane, apart from its time.
func (c Comparison) Err() error {
	var errs []error
	if last := c[len(c)-1].Rendered; last.Encrypted != last.Secrets {
		errs = append(errs, fmt.Errorf("%w: %d of %d", ErrPlainText, last.Encrypted, last.Secrets))
	}
	for _, round := range c {
		if lacking := lacks(round.Rendered.Checks, round.Kubeadm.Checks); len(lacking) > 0 {
			errs = append(errs, fmt.Errorf("%w: %s", ErrReadiness, strings.Join(lacking, ", ")))
		}
	}
	return errors.Join(errs...)
}

func lacks(has, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(one string) bool { return slices.Contains(has, one) })
}

// Print writes a line for every control plane.
func (c Comparison) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, "ROUND\tBY\tFIRST CONTAINER TO READY\tRESTARTS\tREADINESS\tSTATIC PODS\tSECRETS ENCRYPTED")
	errs := []error{err}
	for i, round := range c {
		for _, one := range []struct {
			by string
			Result
		}{{"kubeadm", round.Kubeadm}, {"sno-render", round.Rendered}} {
			_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d checks ok\t%d\t%d of %d\n", i+1, one.by, seconds(one.Start.Took), one.Start.Restarts,
				len(one.Checks), len(one.StaticPods), one.Encrypted, one.Secrets)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}
