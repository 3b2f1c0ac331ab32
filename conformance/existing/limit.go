package existing

import (
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// A person may work on the cluster meanwhile: a run sends no more than this, so that any second sees at most the sum of both.
	requestsPerSecond, requestsAtOnce = 40, 20
)

// limit bounds what is sent with the configuration, by all clients that are made of it and of its copies together, what they send again by themselves included.
// client-go's own limit is for each client, and prints when it waits.
func limit(config *rest.Config) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsAtOnce)
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limited{next: next, limiter: limiter} })
}

type limited struct {
	next    http.RoundTripper
	limiter flowcontrol.RateLimiter
}

// RoundTrip waits for its turn. What would not have its turn before the end of its time ends with that, as if it had been sent.
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

// WrappedRoundTripper is the one below, for client-go, which looks for what can be cancelled.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }
