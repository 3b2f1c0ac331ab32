package auth_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
)

// TestNeedOfRelease shows R-SUITE-8 for the override: what a release needs after an upgrade is another thing than before.
func TestNeedOfRelease(t *testing.T) {
	for release, want := range map[string]auth.ReleaseNeed{
		"4.6.0":                              auth.NeedOverride,
		"4.6.62":                             auth.NeedOverride,
		"4.7.0-fc.3":                         auth.NeedOverride,
		"4.7.0-0.okd-2021-03-07-090821":      auth.NeedOverride,
		"4.7.13+metadata":                    auth.NeedOverride,
		"4.7":                                auth.NeedOverride,
		"4.8.0-0.nightly-2021-06-01-000000":  auth.NeedNone,
		"4.8.0":                              auth.NeedNone,
		"4.10.3":                             auth.NeedNone,
		"4.20.0-okd-scos.11":                 auth.NeedNone,
		"5.0.0":                              auth.NeedNone,
		"5.6.1":                              auth.NeedNone,
		"4.5.41":                             auth.NeedUnknown,
		"4.1.0":                              auth.NeedUnknown,
		"3.11.0":                             auth.NeedUnknown,
		"0.0.1-snapshot":                     auth.NeedUnknown,
		"":                                   auth.NeedUnknown,
		"4":                                  auth.NeedUnknown,
		"latest":                             auth.NeedUnknown,
		"-4.7.0":                             auth.NeedUnknown,
		"4.seven":                            auth.NeedUnknown,
		"99999999999999999999.7":             auth.NeedUnknown,
		"quay.example.com/release:4.7.0-x86": auth.NeedUnknown,
	} {
		if got := auth.NeedOfRelease(release); got != want {
			t.Errorf("%q: %d, want %d", release, got, want)
		}
	}
}

func TestNeedOfCluster(t *testing.T) {
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
		want auth.ReleaseNeed
	}{
		"plain Kubernetes":           {nil, auth.NeedUnknown},
		"nothing yet":                {&configv1.ClusterVersion{}, auth.NeedUnknown},
		"installing":                 {history("4.7.1", "Partial 4.7.1"), auth.NeedOverride},
		"installed":                  {history("4.7.1", "Completed 4.7.1"), auth.NeedOverride},
		"no history":                 {history("4.8.1"), auth.NeedNone},
		"leaving":                    {history("4.8.1", "Partial 4.8.1", "Completed 4.7.1"), auth.NeedOverride},
		"left":                       {history("4.8.1", "Completed 4.8.1", "Completed 4.7.1"), auth.NeedNone},
		"wanted, not begun":          {history("4.8.1", "Completed 4.7.1"), auth.NeedOverride},
		"one that never completed":   {history("4.9.1", "Partial 4.9.1", "Partial 4.7.2", "Completed 4.8.1"), auth.NeedOverride},
		"long ago":                   {history("4.9.1", "Partial 4.9.1", "Completed 4.8.1", "Completed 4.7.2"), auth.NeedNone},
		"from one that is not known": {history("4.8.1", "Partial 4.8.1", "Completed 4.5.1"), auth.NeedNone},
		"to one that is not known":   {history("dev", "Partial dev", "Completed 4.7.1"), auth.NeedOverride},
		"a state from the future":    {history("4.8.1", "Paused 4.8.1", "Completed 4.7.1"), auth.NeedOverride},
	} {
		if got := auth.NeedOfCluster(test.cv); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestParseOverridePolicy(t *testing.T) {
	for _, text := range []string{"auto", "always", "never"} {
		if got, err := auth.ParseOverridePolicy(text); err != nil || string(got) != text {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Auto", "true"} {
		if got, err := auth.ParseOverridePolicy(text); !errors.Is(err, auth.ErrOverridePolicy) || got != "" || !strings.Contains(err.Error(), "auto, always or never") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// What a person asks for comes before what is known of the release, and the topology before both.
func TestOverridePolicy(t *testing.T) {
	ours := authenticationOwnedBy(auth.FieldOwner, perKey)
	set := `{"` + key + `":true}`
	for name, test := range map[string]struct {
		policy         auth.OverridePolicy
		release        string
		mode           configv1.TopologyMode
		overrides      string
		intent, letsGo bool
		says           string
	}{
		"none, needed":             {"", "4.7.1", sr, "", true, false, ""},
		"auto, needed":             {auth.OverrideAuto, "4.6.1", sr, "", true, false, ""},
		"auto, not needed":         {auth.OverrideAuto, "4.8.1", sr, "", false, false, "by the topology alone"},
		"auto, not needed, ours":   {auth.OverrideAuto, "4.8.1", sr, set, false, true, "by the topology alone"},
		"auto, not known":          {auth.OverrideAuto, "dev", sr, "", false, false, "is not known, so none is set; --override=always sets it"},
		"auto, not known, ours":    {auth.OverrideAuto, "dev", sr, set, false, true, "is not known"},
		"always, not needed":       {auth.OverrideAlways, "4.20.1", sr, "", true, false, ""},
		"always, not known":        {auth.OverrideAlways, "", sr, "", true, false, ""},
		"always, highly available": {auth.OverrideAlways, "4.7.1", ha, "", false, false, "is not SingleReplica"},
		"always, two nodes, ours":  {auth.OverrideAlways, "4.7.1", dual, set, false, true, "is not SingleReplica"},
		"never, needed":            {auth.OverrideNever, "4.7.1", sr, "", false, false, "The policy is to set no override"},
		"never, needed, ours":      {auth.OverrideNever, "4.7.1", sr, set, false, true, "The policy is to set no override"},
	} {
		in := overrideInputs(test.overrides)
		if test.overrides != "" {
			ours(in.Authentication)
		}
		cluster := clusterOf(test.mode, test.mode)
		in.Cluster, in.Override, in.ClusterVersion = &cluster, test.policy, running(test.release)
		got := auth.DecideOverride(in)
		if (got.Intent != nil) != test.intent || got.Release != test.letsGo {
			t.Errorf("%s: intent %t, release %t; want %t, %t", name, got.Intent != nil, got.Release, test.intent, test.letsGo)
		}
		if got.Result != nil && (test.says == "" || !strings.Contains(got.Result.Message, test.says)) {
			t.Errorf("%s: %v, want ...%s...", name, got.Result, test.says)
		}
	}
}
