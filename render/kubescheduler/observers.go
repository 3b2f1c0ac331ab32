// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/observe"
)

// Errors of the observers.
var (
	ErrProfile = errors.New("unknown scheduling profile")
	ErrPolicy  = errors.New("kube-scheduler has no policies")
)

// observers returns the operator's observers. mastersSchedulable is about taints and has no effect on kube-scheduler.
func observers(s *inputs.Settings) []librarygo.Observer {
	return []librarygo.Observer{
		observe.From(configv1client.ConfigV1Interface.Schedulers, profiles),
		observe.TLSProfile,
		observe.FeatureGatesAt(s.Profile, []string{"extendedArguments", "feature-gates"}),
	}
}

// profiles returns the scheduler profiles: default, packing nodes, or no scoring (U-REN-20).
func profiles(scheduler *configv1.Scheduler) (map[string]any, error) {
	spec := scheduler.Spec
	if spec.Policy.Name != "" {
		return nil, fmt.Errorf("scheduler cluster: spec.policy.name: %w; choose a spec.profile", ErrPolicy)
	}
	profile := map[string]any{"schedulerName": "default-scheduler"}
	all := map[string]any{"disabled": []any{map[string]any{"name": "*"}}}
	switch spec.Profile {
	case "", configv1.LowNodeUtilization:
	case configv1.HighNodeUtilization:
		profile["pluginConfig"] = []any{map[string]any{
			"name": "NodeResourcesFit",
			"args": map[string]any{"scoringStrategy": map[string]any{"type": "MostAllocated"}},
		}}
		profile["plugins"] = map[string]any{"score": map[string]any{
			"disabled": []any{map[string]any{"name": "NodeResourcesBalancedAllocation"}},
			"enabled":  []any{map[string]any{"name": "NodeResourcesFit", "weight": int64(5)}},
		}}
	case configv1.NoScoring:
		profile["plugins"] = map[string]any{"preScore": all, "score": observe.Merge(all)}
	default:
		return nil, fmt.Errorf("scheduler cluster: spec.profile: %w %s", ErrProfile, spec.Profile)
	}
	switch spec.ProfileCustomizations.DynamicResourceAllocation {
	case "", configv1.DRAEnablementDisabled:
	case configv1.DRAEnablementEnabled:
		profile = observe.Merge(profile, observe.Nested(map[string]any{
			"enabled": []any{map[string]any{"name": "DynamicResources"}},
		}, "plugins", "multiPoint"))
	default:
		return nil, fmt.Errorf("scheduler cluster: spec.profileCustomizations.dynamicResourceAllocation: %w %s",
			ErrProfile, spec.ProfileCustomizations.DynamicResourceAllocation)
	}
	return observe.Nested([]any{profile}, "profiles"), nil
}
