// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
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
	// Each is called with every request that has ended, never concurrently; it may be nil.
	Each func(Sample)
}

// Generator sends requests to one endpoint until Stop is called.
type Generator struct {
	Requests
	endpoint Endpoint
	client   *http.Client
	stop     context.CancelFunc
	done     chan struct{}
	each     sync.Mutex
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
	u := &Generator{
		Requests: Requests{to: endpoint.URL}, endpoint: endpoint, stop: stop, done: make(chan struct{}),
		client: &http.Client{
			Timeout: cmp.Or(endpoint.Within, answerTimeout), Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	go u.run(ctx)
	return u
}

// Stop ends the requests and returns all of them.
func (u *Generator) Stop() []Sample {
	u.stop()
	<-u.done
	return u.Since(time.Time{})
}

func (u *Generator) run(ctx context.Context) {
	defer close(u.done)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	every := time.NewTicker(cmp.Or(u.endpoint.Interval, Interval))
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
	u.add(sample)
	if u.endpoint.Each != nil {
		u.each.Lock()
		defer u.each.Unlock()
		u.endpoint.Each(sample)
	}
}

func (u *Generator) problem(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.endpoint.URL, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("User-Agent", "sno-tests")
	response, err := u.client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	switch {
	case err != nil:
		return err.Error()
	case u.endpoint.Body == "" && response.StatusCode >= cmp.Or(u.endpoint.Errors, http.StatusBadRequest),
		u.endpoint.Body != "" && response.StatusCode != http.StatusOK:
		return response.Status
	case u.endpoint.Body != "" && string(body) != u.endpoint.Body:
		return fmt.Sprintf("another answer: %.40q", body)
	}
	return ""
}
