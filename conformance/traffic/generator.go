// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Interval is the time between two requests.
	Interval      = 50 * time.Millisecond
	answerTimeout = time.Second
	answerLimit   = 1 << 12
)

// Endpoint is what receives requests. Certificates are not verified, because only availability is measured, and proxies
// of the environment are not used.
type Endpoint struct {
	URL string
	// Address is the host and port to connect to; empty for those of the URL.
	Address string
	// Body is that of a good answer, whose status is 200; empty for any.
	Body string
	// Errors is the lowest status that is not an answer, without Body; 0 for 400. Redirects are not followed.
	Errors int
	// Within is the limit for an answer; 0 for a second. Where only lost requests count, a busy machine may need more.
	Within time.Duration
	// Interval is the time between two requests; 0 for the constant.
	Interval time.Duration
}

// Generator sends requests to one endpoint until Stop is called.
type Generator struct {
	endpoint Endpoint
	client   *http.Client
	stop     context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	samples []Sample
}

// Start begins to send requests.
func Start(ctx context.Context, endpoint Endpoint) *Generator {
	ctx, stop := context.WithCancel(ctx)
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only availability is measured
	}
	if endpoint.Address != "" {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, endpoint.Address)
		}
	}
	g := &Generator{
		endpoint: endpoint, stop: stop, done: make(chan struct{}),
		client: &http.Client{
			Timeout: cmp.Or(endpoint.Within, answerTimeout), Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	go g.run(ctx)
	return g
}

// Stop ends the requests and returns all of them.
func (g *Generator) Stop() []Sample {
	g.stop()
	<-g.done
	return g.Since(time.Time{})
}

func (g *Generator) run(ctx context.Context) {
	defer close(g.done)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	every := time.NewTicker(cmp.Or(g.endpoint.Interval, Interval))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			waiting.Go(func() { g.ask(ctx) })
		}
	}
}

// ask sends one request. One that Stop cancels is not recorded.
func (g *Generator) ask(ctx context.Context) {
	sample := Sample{Sent: time.Now(), Problem: g.problem(ctx)}
	if sample.Done = time.Now(); sample.Problem != "" && ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.samples = append(g.samples, sample)
}

func (g *Generator) problem(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.endpoint.URL, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("User-Agent", "sno-tests")
	response, err := g.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	switch {
	case err != nil:
		return err.Error()
	case g.endpoint.Body == "" && response.StatusCode >= cmp.Or(g.endpoint.Errors, http.StatusBadRequest),
		g.endpoint.Body != "" && response.StatusCode != http.StatusOK:
		return response.Status
	case g.endpoint.Body != "" && string(body) != g.endpoint.Body:
		return fmt.Sprintf("another answer: %.40q", body)
	}
	return ""
}

const pollInterval = 20 * time.Millisecond

// ErrLost is returned when requests are not answered.
var ErrLost = errors.New("traffic is lost")

// Since returns the requests that were sent at or after that time and have ended, in the order in which they ended.
func (g *Generator) Since(when time.Time) []Sample {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.samples), func(s Sample) bool { return s.Sent.Before(when) })
}

// WaitAnswered waits until all requests sent from now on have been answered for the duration stable. After timeout it
// returns ErrLost with the last problem.
func (g *Generator) WaitAnswered(ctx context.Context, stable, timeout time.Duration) error {
	var good time.Duration
	var problem string
	begin := time.Now()
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		good, problem = streak(g.Since(begin))
		return good >= stable, nil
	})
	if err != nil {
		problem = cmp.Or(problem, "no request has ended")
		return fmt.Errorf("%w: %s for %s: %s", ErrLost, g.endpoint.URL, time.Since(begin).Round(time.Second), problem)
	}
	return nil
}

func streak(samples []Sample) (good time.Duration, problem string) {
	samples = slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return a.Sent.Compare(b.Sent) })
	var since time.Time
	for _, s := range samples {
		switch {
		case s.Problem != "":
			since, good, problem = time.Time{}, 0, s.Problem
		case since.IsZero():
			since = s.Sent
		default:
			good = s.Sent.Sub(since)
		}
	}
	return good, problem
}

// Sample is one request.
type Sample struct {
	Sent, Done time.Time
	// Problem is why the answer is not good; empty for a good one.
	Problem string
}

// Outage is a period in which no request was answered.
type Outage struct {
	// From is when the first request failed, and To when the next successful one was sent; zero if there was none.
	From, To time.Time
	// Failed counts requests, and Problem is that of the first.
	Failed  int
	Problem string
}

// Length returns its duration; for one that has not ended, until now.
func (o Outage) Length(now time.Time) time.Duration {
	if o.To.IsZero() {
		return now.Sub(o.From)
	}
	return o.To.Sub(o.From)
}

// Outages returns the periods between a failed request and the next successful one, by the time of sending.
func Outages(samples []Sample) []Outage {
	samples = slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return a.Sent.Compare(b.Sent) })
	var all []Outage
	var open *Outage
	for _, s := range samples {
		switch {
		case s.Problem == "" && open != nil:
			open.To = s.Sent
			all, open = append(all, *open), nil
		case s.Problem != "" && open == nil:
			open = &Outage{From: s.Sent, Failed: 1, Problem: s.Problem}
		case s.Problem != "":
			open.Failed++
		}
	}
	if open != nil {
		all = append(all, *open)
	}
	return all
}

// Longest returns the length of the longest outage, or 0.
func Longest(outages []Outage, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, o := range outages {
		longest = max(longest, o.Length(now))
	}
	return longest
}
