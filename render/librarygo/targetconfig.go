// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// TargetConfig returns the loop that writes the ConfigMaps that desired returns, whose names must be in names.
func TargetConfig(name string, operator Operator, namespace string, names []string, desired func(context.Context, *store.Session) ([]*corev1.ConfigMap, error)) loop.Loop {
	return loop.Loop{
		Name:       name,
		Writes:     store.ConfigMaps(namespace, names...),
		AllowStale: allowStale(operator),
		New: func(s *store.Session) (loop.Sync, error) {
			return func(ctx context.Context) error {
				configMaps, err := desired(ctx, s)
				if err != nil {
					return err
				}
				for _, c := range configMaps {
					if err := ApplyConfigMap(ctx, s, c); err != nil {
						return err
					}
				}
				return nil
			}, nil
		},
	}
}
