// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/traffic"
)

// errUnrecovered is returned if a step was not performed, an operand is not available, or requests are not answered.
var errUnrecovered = errors.New("not recovered")

// act is one of the disruptions of a recovery.
type act func(context.Context) (*catalogue.Disruption, error)

type step struct {
	name       string
	act        act
	begin, end time.Time
	// problem is why the cluster has not recovered; empty if it has.
	problem string
}

type requester interface {
	WaitAnswered(ctx context.Context, stable, timeout time.Duration) error
	Stop() []traffic.Sample
}

type trafficClient struct {
	name string
	requester
	samples []traffic.Sample
}

// recovery performs steps while clients send requests.
type recovery struct {
	clients []trafficClient
	steps   []step
	// Requests count as answered again after stable without a failure, for which limit is the time.
	stable, limit time.Duration
}

// run performs the steps until one of them has a problem, and stops the clients.
func (r *recovery) run(ctx context.Context) {
	for i := range r.steps {
		s := &r.steps[i]
		s.begin = time.Now()
		if err := r.perform(ctx, s.act); err != nil {
			s.problem = err.Error()
		}
		if s.end = time.Now(); s.problem != "" {
			break
		}
	}
	r.stop()
}

func (r *recovery) stop() {
	for i := range r.clients {
		r.clients[i].samples = r.clients[i].Stop()
	}
}

func (r *recovery) perform(ctx context.Context, do act) error {
	disruption, err := do(ctx)
	if err != nil {
		return err
	}
	for _, o := range disruption.Operands {
		if o.Failure != "" {
			err = errors.Join(err, fmt.Errorf("%w: %s: %s", errUnrecovered, o.Name, o.Failure))
		}
	}
	for i := range r.clients {
		err = errors.Join(err, r.clients[i].WaitAnswered(ctx, r.stable, r.limit))
	}
	return err
}

// verdict returns errUnrecovered with the first problem.
func (r *recovery) verdict() error {
	for _, s := range r.steps {
		if s.problem != "" {
			return fmt.Errorf("%w: %s: %s", errUnrecovered, s.name, s.problem)
		}
	}
	return nil
}

// requests are those of one client that ended during one step: one that an outage cuts off was sent before it began.
type requests struct {
	step, client string
	sent, failed int
	silence      time.Duration
	recovered    bool
}

func (r *recovery) requests() []requests {
	var all []requests
	for _, s := range r.steps {
		if s.begin.IsZero() {
			continue
		}
		for _, c := range r.clients {
			row := requests{step: s.name, client: c.name, silence: traffic.Silence(c.samples, s.begin, s.end), recovered: s.problem == ""}
			for _, sample := range c.samples {
				if sample.Done.Before(s.begin) || !sample.Done.Before(s.end) {
					continue
				}
				row.sent++
				if sample.Problem != "" {
					row.failed++
				}
			}
			all = append(all, row)
		}
	}
	return all
}

// measurements returns the requests for a report.
func measurements(all []requests) []report.Measurement {
	var rows []report.Measurement
	for _, r := range all {
		rows = append(rows, report.Measurement{
			What:     fmt.Sprintf("Requests through the Route, %s, from %s", r.step, r.client),
			Measured: fmt.Sprintf("%d sent, %d failed, longest time without an answer %.2f s", r.sent, r.failed, r.silence.Seconds()),
			Held:     r.recovered,
		})
	}
	return rows
}

func writeRequests(w io.Writer, all []requests) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "step\tclient\tsent\tfailed\tlongest time without an answer\trecovered")
	for _, r := range all {
		recovered := "yes"
		if !r.recovered {
			recovered = "no"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.2f s\t%s\n", r.step, r.client, r.sent, r.failed, r.silence.Seconds(), recovered)
	}
	return table.Flush()
}
