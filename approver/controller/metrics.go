package controller

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics, beside those that every module has.
const (
	PendingRequests  = "sno_approver_pending_requests"
	OldestRequestAge = "sno_approver_oldest_pending_request_age_seconds"
	FirstEnd         = "sno_approver_first_serving_certificate_end_timestamp_seconds"
)

// measured is what the metrics are about: a leader that comes after another one in the same process takes them over.
var measured atomic.Pointer[aging]

// registerMetrics registers the metrics, once for every registry.
func registerMetrics(registry prometheus.Registerer) error {
	value := func(of func(*aging) float64) func() float64 {
		return func() float64 {
			if a := measured.Load(); a != nil {
				return of(a)
			}
			return 0
		}
	}
	for _, gauge := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: PendingRequests, Help: "Certificate signing requests of nodes that nobody has decided on.",
		}, value(func(a *aging) float64 { return float64(a.known().Pending) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: OldestRequestAge, Help: "Age of the oldest certificate signing request of a node that nobody has decided on; 0 without one.",
		}, value(func(a *aging) float64 { return a.known().OldestAge(a.now()).Seconds() })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: FirstEnd, Help: "When the first of the certificates ends that kubelets serve with, as a Unix time; 0 while none was seen.",
		}, value(func(a *aging) float64 {
			seen := a.known()
			if seen.Certificates == 0 {
				return 0
			}
			return float64(seen.FirstEnd.Unix())
		})),
	} {
		if err := registry.Register(gauge); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}
