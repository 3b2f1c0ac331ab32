// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth/decision"
)

// R-SUITE-8 for the override: its need ends with an upgrade.
func TestOverrideByRelease(t *testing.T) {
	const needed, none, unknown = "", "without an override", "is not known"
	history := func(desired string, entries ...string) *configv1.ClusterVersion {
		cv := running(desired)
		for _, entry := range entries {
			state, release, _ := strings.Cut(entry, " ")
			cv.Status.History = append(cv.Status.History, configv1.UpdateHistory{State: configv1.UpdateState(state), Version: release})
		}
		return cv
	}
	for name, test := range map[string]struct {
		cv   *configv1.ClusterVersion
		want string
	}{
		"4.6":                      {running("4.6.0"), needed},
		"4.7 of OKD":               {running("4.7.0-0.okd-2021-03-07-090821"), needed},
		"4.7 with metadata":        {running("4.7.13+metadata"), needed},
		"4.8 in development":       {running("4.8.0-0.nightly-2021-06-01-000000"), none},
		"4.8":                      {running("4.8.0"), none},
		"5.6":                      {running("5.6.1"), none},
		"4.5":                      {running("4.5.41"), unknown},
		"a snapshot":               {running("0.0.1-snapshot"), unknown},
		"no version":               {running(""), unknown},
		"a major version":          {running("4"), unknown},
		"negative":                 {running("-4.7.0"), unknown},
		"out of range":             {running("99999999999999999999.7"), unknown},
		"an image":                 {running("quay.example.com/release:4.7.0-x86"), unknown},
		"plain Kubernetes":         {nil, unknown},
		"installing":               {history("4.7.1", "Partial 4.7.1"), needed},
		"installed":                {history("4.7.1", "Completed 4.7.1"), needed},
		"upgrading":                {history("4.8.1", "Partial 4.8.1", "Completed 4.7.1"), needed},
		"upgraded":                 {history("4.8.1", "Completed 4.8.1", "Completed 4.7.1"), none},
		"desired, not begun":       {history("4.8.1", "Completed 4.7.1"), needed},
		"one that never completed": {history("4.9.1", "Partial 4.9.1", "Partial 4.7.2", "Completed 4.8.1"), needed},
		"in an older entry":        {history("4.9.1", "Partial 4.9.1", "Completed 4.8.1", "Completed 4.7.2"), none},
		"from an unknown release":  {history("4.8.1", "Partial 4.8.1", "Completed 4.5.1"), none},
		"to an unknown release":    {history("dev", "Partial dev", "Completed 4.7.1"), needed},
		"an unknown state":         {history("4.8.1", "Paused 4.8.1", "Completed 4.7.1"), needed},
	} {
		in := overrideInputs("")
		in.ClusterVersion = test.cv
		step := decision.Decide(in).Override
		if (step.Intent != nil) != (test.want == needed) || !strings.Contains(step.Result.Message, test.want) {
			t.Errorf("%s: intent %t, %v, want %q", name, step.Intent != nil, step.Result, test.want)
		}
	}
}
