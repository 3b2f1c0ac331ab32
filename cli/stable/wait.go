// SPDX-License-Identifier: Apache-2.0

// Package stable waits until a cluster is ready for workloads: the API server and nodes still restart after the
// installation (R-OPS-3).
//
// The ClusterVersion does not cover this, because other operators restart nodes too. Check reads everything that
// changes with the cluster, and Wait requires a period without changes. While a kind cannot be read, the cluster is not
// stable.
package stable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	interval    = 10 * time.Second // between two checks
	maxLines    = 20               // of progress after one check
	remindAfter = time.Minute      // progress without a change is printed again
)

var (
	// ErrNotStable is returned at the timeout.
	ErrNotStable = errors.New("the cluster is not stable")
	errOptions   = errors.New("invalid options")
)

// Options of Wait: how long nothing may change, 0 for one check, the timeout, and where to print changes.
type Options struct {
	Quiet, Timeout time.Duration
	Progress       io.Writer
}

// Validate returns an error unless the period fits into the timeout.
func (o Options) Validate() error {
	if o.Quiet < 0 || o.Timeout <= 0 || o.Quiet > o.Timeout {
		return fmt.Errorf("%w: a period of %s does not fit into a timeout of %s; both must be positive, or the period 0", errOptions, o.Quiet, o.Timeout)
	}
	return nil
}

// Outcome is the result of Wait: the last report, and how long nothing had changed.
type Outcome struct {
	Stable bool            `json:"stable"`
	Waited metav1.Duration `json:"waited"`
	Quiet  metav1.Duration `json:"quiet"`
	Report `json:",inline"`
}

// Wait checks the cluster until nothing has changed for the period. ErrNotStable, at the timeout, comes with the last
// outcome.
func Wait(ctx context.Context, cluster client.Reader, o Options) (Outcome, error) {
	if err := o.Validate(); err != nil {
		return Outcome{}, err
	}
	start := time.Now()
	var known history
	printer := progress{options: o}
	for {
		report := Check(ctx, cluster)
		if ctx.Err() != nil {
			return Outcome{}, ctx.Err()
		}
		now := time.Now()
		waited := now.Sub(start)
		quiet, changed := known.observe(&report, now)
		settled := report.IsStable()
		out := Outcome{
			settled && quiet >= o.Quiet, metav1.Duration{Duration: waited.Round(time.Second)}, metav1.Duration{Duration: quiet.Round(time.Second)}, report,
		}
		if out.Stable {
			return out, nil
		}
		if waited >= o.Timeout {
			return out, fmt.Errorf("%w after %s", ErrNotStable, out.Waited.Duration)
		}
		printer.print(now, waited, &report, quiet, changed)
		next := min(interval, o.Timeout-waited)
		if settled {
			next = min(next, o.Quiet-quiet)
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(next):
		}
	}
}

type history struct {
	// since is when the stable period began; zero while something is unstable.
	since        time.Time
	fingerprints map[string]string
	first        map[string]time.Time
}

// observe returns how long nothing has changed, and which objects have changed since the last report (R-OPS-3). It sets
// missing times.
func (h *history) observe(r *Report, now time.Time) (time.Duration, []string) {
	first := map[string]time.Time{}
	for i := range r.Unstable {
		c := &r.Unstable[i]
		first[c.Object] = now
		if seen, was := h.first[c.Object]; was {
			first[c.Object] = seen
		}
		if c.Since.IsZero() {
			c.Since = metav1.NewTime(first[c.Object])
		}
	}
	h.first = first
	var changed []string
	if len(r.Unreadable) == 0 { // otherwise marks are missing, and the earlier ones are kept
		changed = h.changedObjects(r)
		h.fingerprints = r.Fingerprints
	}
	switch {
	case !r.IsStable():
		h.since = time.Time{}
		return 0, changed
	case h.since.IsZero(), len(changed) > 0:
		h.since = now
	}
	return now.Sub(h.since), changed
}

func (h *history) changedObjects(r *Report) []string {
	if h.fingerprints == nil {
		return nil
	}
	var changed []string
	for object, mark := range r.Fingerprints {
		if h.fingerprints[object] != mark {
			changed = append(changed, object)
		}
	}
	for object := range h.fingerprints {
		// Kubernetes deletes old requests.
		if _, is := r.Fingerprints[object]; !is && !strings.HasPrefix(object, requestKind+" ") {
			changed = append(changed, object)
		}
	}
	slices.Sort(changed)
	return changed
}

type progress struct {
	options Options
	printed sets.Set[string]
	last    time.Time
}

func (p *progress) print(now time.Time, waited time.Duration, r *Report, quiet time.Duration, changed []string) {
	current := r.lines()
	lines := slices.DeleteFunc(slices.Clone(current), p.printed.Has)
	p.printed = sets.New(current...)
	summary := fmt.Sprintf("Waiting: %d changing", len(r.Unstable))
	if len(r.Unreadable) > 0 {
		summary += fmt.Sprintf(", %d kinds cannot be read", len(r.Unreadable))
	}
	if r.IsStable() {
		summary = fmt.Sprintf("Stable for %s of %s", duration.HumanDuration(quiet), duration.HumanDuration(p.options.Quiet))
		for _, object := range changed {
			lines = append(lines, object+": has changed")
		}
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("... and %d more", len(lines)-maxLines))
	}
	if len(lines) == 0 && now.Sub(p.last) < remindAfter {
		return
	}
	p.last = now
	for _, line := range append(lines, summary+"; "+duration.HumanDuration(p.options.Timeout-waited)+" left") {
		fmt.Fprintf(p.options.Progress, "%s %s\n", now.Format(time.TimeOnly), line)
	}
}

func (r *Report) lines() []string {
	lines := slices.Clone(r.Notes)
	for _, c := range r.Unstable {
		lines = append(lines, fmt.Sprintf("%s, since %s", c, c.Since.UTC().Format(time.RFC3339)))
	}
	for _, u := range r.Unreadable {
		lines = append(lines, u.String())
	}
	for _, kind := range r.NotServed {
		lines = append(lines, kind+": skipped, the cluster does not serve it")
	}
	return lines
}
