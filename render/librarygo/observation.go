// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openshift/library-go/pkg/operator/configobserver"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/resourcesynccontroller"
	"k8s.io/client-go/tools/cache"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// Observer returns a part of the configuration. Observers must not overlap: they are merged in random order.
type Observer func(ctx context.Context, s *store.Session, existing map[string]any) (map[string]any, error)

// ConfigObservation returns the loop that writes the observers' results into spec.observedConfig.
func ConfigObservation(name string, operator Operator, observers ...Observer) loop.Loop {
	return loop.Loop{
		Name:       name,
		Writes:     []store.Pattern{operator.Pattern()},
		AllowStale: operator.stale(),
		New: func(s *store.Session) (loop.Sync, error) {
			adapted := make([]configobserver.ObserveConfigFunc, 0, len(observers))
			for _, observe := range observers {
				adapted = append(adapted, func(_ configobserver.Listers, _ events.Recorder, existing map[string]any) (map[string]any, []error) {
					observed, err := observe(background(), s, existing)
					if err != nil {
						return observed, []error{err}
					}
					return observed, nil
				})
			}
			controller := configobserver.NewConfigObserver(s.Name(), operator.client(s), recorder(s), noListers{}, nil, adapted...)
			return operator.managed(s, reconcile(controller, s)), nil
		},
	}
}

// noListers is empty: observers have a session, and sync rules are declared.
type noListers struct{}

func (noListers) ResourceSyncer() resourcesynccontroller.ResourceSyncer { return nil }

func (noListers) PreRunHasSynced() []cache.InformerSynced { return nil }

// stale returns what loops of an operator read and later loops change: its resource, of which they use the management
// state, which no loop changes, and what they have written themselves.
func (o Operator) stale() []store.Pattern { return []store.Pattern{o.Pattern()} }

// ObservedConfig returns spec.observedConfig of the operator's resource, or an empty map.
func ObservedConfig(ctx context.Context, s *store.Session, operator Operator) (map[string]any, error) {
	found, err := operator.client(s).read(ctx)
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if raw := found.spec.ObservedConfig.Raw; len(raw) > 0 {
		if err := json.Unmarshal(raw, &config); err != nil {
			return nil, fmt.Errorf("read spec.observedConfig of %s %s: %w", operator, instance, err)
		}
	}
	return config, nil
}
