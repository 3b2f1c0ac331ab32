// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/store"
)

// ErrFeatureGates is returned for ambiguous feature gates.
var ErrFeatureGates = errors.New("ambiguous feature gates")

// FeatureGates returns NAME=true or NAME=false for every gate of the status, sorted by name, for OpenShift's programs,
// which log unknown ones. Kubernetes' programs do not start with an unknown gate, so they get none (U-REN-10).
func FeatureGates(gates *configv1.FeatureGate, profile inputs.Profile) ([]string, error) {
	values := map[string]bool{}
	if profile == inputs.OpenShift {
		if releases := len(gates.Status.FeatureGates); releases > 1 {
			return nil, fmt.Errorf("featuregate cluster: status.featureGates has %d releases: %w; keep the one to render",
				releases, ErrFeatureGates)
		}
		for _, release := range gates.Status.FeatureGates {
			for _, gate := range release.Disabled {
				values[string(gate.Name)] = false
			}
			for _, gate := range release.Enabled {
				values[string(gate.Name)] = true
			}
		}
	}
	list := make([]string, 0, len(values))
	for name, on := range values {
		list = append(list, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(list)
	return list, nil
}

// FeatureGatesAt returns an observer that writes the gates to each path.
func FeatureGatesAt(profile inputs.Profile, paths ...[]string) librarygo.Observer {
	return func(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
		gates, err := s.Config().ConfigV1().FeatureGates().Get(ctx, "cluster", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		values, err := FeatureGates(gates, profile)
		if err != nil {
			return nil, err
		}
		config := map[string]any{}
		if len(values) == 0 {
			return config, nil
		}
		list := make([]any, len(values))
		for i := range values {
			list[i] = values[i]
		}
		for _, path := range paths {
			config = Merge(config, Nested(list, path...))
		}
		return config, nil
	}
}
