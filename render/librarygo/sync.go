// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"errors"
	"fmt"

	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/openshift/library-go/pkg/operator/condition"
	"github.com/openshift/library-go/pkg/operator/resourcesynccontroller"
	"github.com/openshift/library-go/pkg/operator/v1helpers"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// ErrNotCopied is returned for a failure that resource sync reports as a condition.
var ErrNotCopied = errors.New("resources were not copied")

// SyncRule is one copy of resource sync. The copy is removed if the source does not exist.
type SyncRule struct {
	// Secret selects Secrets instead of ConfigMaps.
	Secret   bool
	To, From store.Object
	// Keys are the keys to copy; none copies all.
	Keys []string
}

// ResourceSync returns the loop that copies ConfigMaps and Secrets from one namespace to another.
func ResourceSync(name string, operator Operator, rules ...SyncRule) loop.Loop {
	l := loop.Loop{Name: name, Writes: []store.Pattern{operator.Pattern()}, AllowStale: operator.stale()}
	var names []string
	for _, rule := range rules {
		names = append(names, rule.To.Namespace, rule.From.Namespace)
		if rule.Secret {
			l.Writes = append(l.Writes, store.Secrets(rule.To.Namespace, rule.To.Name)...)
		} else {
			l.Writes = append(l.Writes, store.ConfigMaps(rule.To.Namespace, rule.To.Name)...)
		}
	}
	l.New = func(s *store.Session) (loop.Sync, error) {
		client := operator.client(s)
		core := s.Kube().CoreV1()
		controller := resourcesynccontroller.NewResourceSyncController(s.Name(), client, informersFor(s, names...), core, core, recorder(s))
		stopQueue(controller)
		for _, rule := range rules {
			add := controller.SyncPartialConfigMap
			if rule.Secret {
				add = controller.SyncPartialSecret
			}
			to := resourcesynccontroller.ResourceLocation{Namespace: rule.To.Namespace, Name: rule.To.Name}
			from := resourcesynccontroller.ResourceLocation{Namespace: rule.From.Namespace, Name: rule.From.Name}
			if err := add(to, from, rule.Keys...); err != nil {
				return nil, fmt.Errorf("copy %s to %s: %w", rule.From, rule.To, err)
			}
		}
		return operator.managed(s, func(ctx context.Context) error {
			if err := controller.Sync(ctx, syncContext{recorder: recorder(s)}); err != nil {
				return fmt.Errorf("reconcile: %w", err)
			}
			_, status, _, err := client.GetOperatorState()
			if err != nil {
				return err
			}
			degraded := v1helpers.FindOperatorCondition(status.Conditions, condition.ResourceSyncControllerDegradedConditionType)
			if degraded != nil && degraded.Status == operatorv1.ConditionTrue {
				return fmt.Errorf("%w: %s", ErrNotCopied, degraded.Message)
			}
			return nil
		}), nil
	}
	return l
}
