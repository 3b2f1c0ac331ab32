// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

var errNotServed = errors.New("not served")

// prober requests a path from API servers, each several times before it counts as failed, as upstream does (U-AUTH-6).
type prober struct {
	path  string
	http  *http.Client
	tries wait.Backoff
}

// newProber returns one that trusts the CA of the cluster's client. It sends no credentials, because any endpoint could
// receive them.
func newProber(config *rest.Config, options Options) (*prober, error) {
	const timeout = 5 * time.Second
	trust, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: config.CAData, CAFile: config.CAFile, ServerName: options.WellKnownServerName,
	}})
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	var dialer net.Dialer
	return &prober{
		path: options.WellKnownPath,
		http: &http.Client{
			Timeout: timeout,
			Transport: &http.Transport{
				TLSClientConfig: trust,
				// A kept connection would reach a server that accepts no new ones.
				DisableKeepAlives: true,
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					if instead, ok := options.ConnectTo[address]; ok {
						address = instead
					}
					return dialer.DialContext(ctx, network, address)
				},
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		tries: options.Tries,
	}, nil
}

// all requests all endpoints in parallel, and returns an error or nil for each.
func (p *prober) all(ctx context.Context, endpoints []string) []error {
	results := make([]error, len(endpoints))
	var asked sync.WaitGroup
	for i, endpoint := range endpoints {
		asked.Go(func() { results[i] = p.one(ctx, endpoint) })
	}
	asked.Wait()
	return results
}

func (p *prober) one(ctx context.Context, endpoint string) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, p.tries, func(ctx context.Context) (bool, error) {
		last = p.ask(ctx, endpoint)
		return last == nil, nil
	})
	if err != nil && last == nil {
		last = err
	}
	return last
}

func (p *prober) ask(ctx context.Context, endpoint string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint+p.path, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", endpoint, err)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", endpoint, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("asking %s: %w", endpoint, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answered %s", errNotServed, endpoint, response.Status)
	}
	return nil
}
