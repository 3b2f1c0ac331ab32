// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/solonode/sno/conformance/internal/shell"
)

const (
	answered = "ok"
	failed   = "failed"
)

var errEnded = errors.New("the client has ended")

// Outside is a client on any machine: a command that sends requests until it is stopped, and prints a line for each.
// The line is "ok" or "failed", optionally with the seconds that the request took and a reason. Requests are dated by
// the arrival of their lines, because the clock of the machine can differ.
type Outside struct {
	Requests
	stop context.CancelFunc
	done chan struct{}
}

// Listen starts a command, which gets the URL and, if there is one, the address as arguments. Its standard error goes
// to problems.
func Listen(ctx context.Context, command string, endpoint Endpoint, problems func(string)) *Outside {
	ctx, stop := context.WithCancel(ctx)
	o := &Outside{Requests: Requests{to: endpoint.URL + " from " + command}, stop: stop, done: make(chan struct{})}
	args := []string{endpoint.URL}
	if endpoint.Address != "" {
		args = append(args, endpoint.Address)
	}
	go func() {
		defer close(o.done)
		_, err := shell.Command{Line: command, Args: args, Out: func(line string) { o.add(parse(line, time.Now())) }, Err: problems}.Run(ctx)
		if ctx.Err() == nil {
			now, problem := time.Now(), errEnded
			if err != nil {
				problem = fmt.Errorf("%w: %w", errEnded, err)
			}
			o.add(Sample{Sent: now, Done: now, Problem: problem.Error()})
		}
	}()
	return o
}

// Stop ends the command and returns all requests.
func (o *Outside) Stop() []Sample {
	o.stop()
	<-o.done
	return o.Since(time.Time{})
}

func parse(line string, arrived time.Time) Sample {
	sample := Sample{Sent: arrived, Done: arrived}
	what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, reason, _ := strings.Cut(rest, " ")
	if seconds, err := strconv.ParseFloat(number, 64); err == nil {
		sample.Sent = arrived.Add(-time.Duration(seconds * float64(time.Second)))
		rest = reason
	}
	switch {
	case what == failed && rest != "":
		sample.Problem = rest
	case what != answered:
		sample.Problem = line
	}
	return sample
}

// Write writes the line of a request.
func (s Sample) Write(w io.Writer) error {
	line := fmt.Sprintf("%s %.3f", answered, s.Done.Sub(s.Sent).Seconds())
	if s.Problem != "" {
		line = fmt.Sprintf("%s %.3f %s", failed, s.Done.Sub(s.Sent).Seconds(), strings.ReplaceAll(s.Problem, "\n", " "))
	}
	_, err := fmt.Fprintln(w, line)
	return err //nolint:wrapcheck // the writer is the caller's
}
