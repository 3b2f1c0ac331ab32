package controller

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// The metric of the drains, and the values of its label.
const (
	drainTries = "sno_drain_tries_total"

	resultDone      = "done"
	resultNotNeeded = "not-needed"
	resultFailed    = "failed"
	resultStopped   = "stopped"
)

// tries counts how the tries to drain a node ended.
type tries struct{ counter *prometheus.CounterVec }

// newTries registers the counter, or takes the one of an earlier generation of the manager.
func newTries(registry prometheus.Registerer) (tries, error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: drainTries, Help: "Requests for a drain that were answered without one, and tries to drain a node, by how they ended.",
	}, []string{"result"})
	err := registry.Register(counter)
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if earlier, ok := taken.ExistingCollector.(*prometheus.CounterVec); ok {
			return tries{earlier}, nil
		}
	}
	if err != nil {
		return tries{}, fmt.Errorf("registering %s: %w", drainTries, err)
	}
	return tries{counter}, nil
}

func (t tries) ended(result string) { t.counter.WithLabelValues(result).Inc() }
