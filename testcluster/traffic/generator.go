// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// Interval is the time between two requests.
	Interval      = 50 * time.Millisecond
	answerTimeout = time.Second
	answerLimit   = 1 << 12
	pollInterval  = 20 * time.Millisecond
)

// ErrLost is returned when requests are not answered.
var ErrLost = errors.New("traffic is lost")

// Generator sends requests to one address until Stop is called.
type Generator struct {
	url    string
	want   string
	client *http.Client
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	samples []Sample
}

// Start begins to request url. An answer is good if it is 200 OK and its body is want. Certificates are not verified.
func Start(ctx context.Context, url, want string) *Generator {
	ctx, stop := context.WithCancel(ctx)
	u := &Generator{url: url, want: want, stop: stop, done: make(chan struct{}), client: &http.Client{
		Timeout: answerTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // only availability is measured
		},
	}}
	go u.run(ctx)
	return u
}

// Stop ends the requests and returns all of them.
func (u *Generator) Stop() []Sample {
	u.stop()
	<-u.done
	return u.Since(time.Time{})
}

// Since returns the requests that were sent at or after that time and have ended, in the order in which they ended.
func (u *Generator) Since(when time.Time) []Sample {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.samples), func(s Sample) bool { return s.Sent.Before(when) })
}

// WaitAnswered waits until all requests sent from now on have been answered for the duration stable. After timeout it
// returns ErrLost with the last problem.
func (u *Generator) WaitAnswered(ctx context.Context, stable, timeout time.Duration) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		good, problem := streak(u.Since(begin))
		if good >= stable {
			return nil
		}
		select {
		case <-ctx.Done():
			if problem == "" {
				problem = "no request has ended"
			}
			return fmt.Errorf("%w: %s for %s: %s", ErrLost, u.url, time.Since(begin).Round(time.Second), problem)
		case <-again.C:
		}
	}
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

func (u *Generator) run(ctx context.Context) {
	defer close(u.done)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	every := time.NewTicker(Interval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			waiting.Go(func() { u.ask(ctx) })
		}
	}
}

// ask sends one request. One that Stop cancels is not recorded.
func (u *Generator) ask(ctx context.Context) {
	sample := Sample{Sent: time.Now(), Problem: u.problem(ctx)}
	if sample.Done = time.Now(); sample.Problem != "" && ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.samples = append(u.samples, sample)
}

func (u *Generator) problem(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url, nil)
	if err != nil {
		return err.Error()
	}
	response, err := u.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	switch {
	case err != nil:
		return err.Error()
	case response.StatusCode != http.StatusOK:
		return response.Status
	case string(body) != u.want:
		return fmt.Sprintf("another answer: %.40q", body)
	}
	return ""
}
