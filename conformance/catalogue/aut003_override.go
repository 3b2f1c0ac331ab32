// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
)

const (
	overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
	// firstWithTopologies is the first release whose authentication operator evaluates the topology. Others need the
	// override.
	firstWithTopologies = "4.8.0"
)

func noOverride() Check {
	setOverride := func(text string) func(*Input) bool {
		return onState(func(s *State) { s.Authentication.Spec.UnsupportedConfigOverrides.Raw = []byte(text) })
	}
	return Check{
		ID: "SNO-AUT-003", Title: "No unsupported override stands in for the topology", Module: auth, Level: Core, Tier: Static,
		Requirement: Requirement{"R-AUTH-1", "one node is enough because of the topology, not of an unsupported override"},
		NotApplicable: func(s *State) string {
			if s.Authentication == nil {
				return "the operator's Authentication does not exist"
			}
			return unless(s.ClusterVersion == nil || !beforeTopologies(s.ClusterVersion.Status.Desired.Version), "the release does not evaluate the topology")
		},
		Run: func(in *Input) ([]report.Evidence, error) {
			got := "not set"
			if containsKey(in.State.Authentication.Spec.UnsupportedConfigOverrides.Raw, overrideKey) {
				got = "set"
			}
			return []report.Evidence{found("Authentication cluster", "spec.unsupportedConfigOverrides."+overrideKey, "not set", got, got == "not set")}, nil
		},
		Controls: []Control{
			{Name: "the override is set", Change: setOverride(`{"` + overrideKey + `":true}`)},
			{Name: "another override is set", MustPass: true, Change: setOverride(`{"example":true}`)},
		},
	}
}

// beforeTopologies returns false for unknown versions.
func beforeTopologies(release string) bool {
	v, err := version.ParseGeneric(release)
	return err == nil && v.LessThan(version.MustParseGeneric(firstWithTopologies))
}

func containsKey(text []byte, key string) bool {
	var object map[string]any
	err := yaml.Unmarshal(text, &object)
	_, ok := object[key]
	return err == nil && ok
}
