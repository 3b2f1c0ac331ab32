// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// Others may use the cluster at the same time. Any one second has at most the sum of both.
	requestsPerSecond, requestsAtOnce = 40, 20
)

// limit bounds the total requests of all clients of the configuration and its copies, including retries. client-go's
// own limit is for each client, and logs waits.
func limit(config *rest.Config) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsAtOnce)
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limited{next: next, limiter: limiter} })
}

type limited struct {
	next    http.RoundTripper
	limiter flowcontrol.RateLimiter
}

// RoundTrip waits for the limiter. A request whose context would end first fails when it ends, as if it had been sent.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if err := l.limiter.Wait(ctx); err != nil {
		<-ctx.Done()
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, ctx.Err()
	}
	return l.next.RoundTrip(request)
}

// WrappedRoundTripper allows client-go to find a transport that can cancel requests.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }
