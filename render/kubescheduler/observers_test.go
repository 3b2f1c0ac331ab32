// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func TestProfiles(t *testing.T) {
	for name, test := range map[string]struct {
		spec configv1.SchedulerSpec
		want string
		err  error
	}{
		"default": {want: `profiles: [{schedulerName: default-scheduler}]`},
		"LowNodeUtilization": {
			spec: configv1.SchedulerSpec{Profile: configv1.LowNodeUtilization},
			want: `profiles: [{schedulerName: default-scheduler}]`,
		},
		"HighNodeUtilization": {
			spec: configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization},
			want: `
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}], enabled: [{name: NodeResourcesFit, weight: 5}]}`,
		},
		"NoScoring": {
			spec: configv1.SchedulerSpec{Profile: configv1.NoScoring},
			want: `
profiles:
- schedulerName: default-scheduler
  plugins: {preScore: {disabled: [{name: "*"}]}, score: {disabled: [{name: "*"}]}}`,
		},
		"dynamic resources": {
			spec: configv1.SchedulerSpec{Profile: configv1.NoScoring, ProfileCustomizations: configv1.ProfileCustomizations{
				DynamicResourceAllocation: configv1.DRAEnablementEnabled}},
			want: `
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: DynamicResources}]}
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}`,
		},
		"mastersSchedulable has no effect": {
			spec: configv1.SchedulerSpec{MastersSchedulable: true}, want: `profiles: [{schedulerName: default-scheduler}]`,
		},
		"a policy": {spec: configv1.SchedulerSpec{Policy: configv1.ConfigMapNameReference{Name: "mine"}}, err: ErrPolicy},
		"unknown":  {spec: configv1.SchedulerSpec{Profile: "Fast"}, err: ErrProfile},
		"unknown customization": {
			spec: configv1.SchedulerSpec{ProfileCustomizations: configv1.ProfileCustomizations{DynamicResourceAllocation: "Maybe"}},
			err:  ErrProfile,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := profiles(test.spec)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if test.err != nil {
				return
			}
			text, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			want, err := yaml.YAMLToJSON([]byte(test.want))
			if err != nil {
				t.Fatal(err)
			}
			wantText, err := yaml.JSONToYAML(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(wantText), string(text)); diff != "" {
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
