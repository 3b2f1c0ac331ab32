// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func TestProfiles(t *testing.T) {
	const standard = `profiles: [{schedulerName: default-scheduler}]`
	for name, test := range map[string]struct {
		spec, want string
		err        error
	}{
		"default":            {`{}`, standard, nil},
		"LowNodeUtilization": {`profile: LowNodeUtilization`, standard, nil},
		"HighNodeUtilization": {`profile: HighNodeUtilization`, `
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}], enabled: [{name: NodeResourcesFit, weight: 5}]}`, nil},
		"NoScoring": {`profile: NoScoring`, `
profiles:
- schedulerName: default-scheduler
  plugins: {preScore: {disabled: [{name: "*"}]}, score: {disabled: [{name: "*"}]}}`, nil},
		"dynamic resources": {`{profile: NoScoring, profileCustomizations: {dynamicResourceAllocation: Enabled}}`, `
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: DynamicResources}]}
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}`, nil},
		"mastersSchedulable has no effect": {`mastersSchedulable: true`, standard, nil},
		"a policy":                         {`policy: {name: mine}`, "", ErrPolicy},
		"unknown":                          {`profile: Fast`, "", ErrProfile},
		"unknown customization":            {`profileCustomizations: {dynamicResourceAllocation: Maybe}`, "", ErrProfile},
	} {
		t.Run(name, func(t *testing.T) {
			var scheduler configv1.Scheduler
			if err := yaml.UnmarshalStrict([]byte(test.spec), &scheduler.Spec); err != nil {
				t.Fatal(err)
			}
			got, err := profiles(&scheduler)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			var want map[string]any
			if err := yaml.UnmarshalStrict([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigurationNotObserved(t *testing.T) {
	if _, err := configuration(map[string]any{}, inputs.OpenShift); !errors.Is(err, observe.ErrNotObserved) {
		t.Errorf("error %v, want %v", err, observe.ErrNotObserved)
	}
}
