package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/auth"
)

// Every form is tested where it is read, in patch/unsupportedconfig.
func TestReadOverride(t *testing.T) {
	for raw, want := range map[string]auth.Override{
		"":                             {},
		`{"other":true}`:               {},
		`{"` + key + `":"true"}`:       {Present: true, Value: true},
		"other: 1\n" + key + ": false": {Present: true},
	} {
		if got, err := auth.ReadOverride([]byte(raw)); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

func TestReadOverrideErrors(t *testing.T) {
	for raw, says := range map[string]string{
		"[]":                        "spec.unsupportedConfigOverrides: not an object",
		`{"` + key + `":"perhaps"}`: "spec.unsupportedConfigOverrides." + key + ` is "perhaps"; want true or false`,
	} {
		got, err := auth.ReadOverride([]byte(raw))
		if !errors.Is(err, auth.ErrOverride) || !strings.Contains(err.Error(), says) || got != (auth.Override{}) {
			t.Errorf("%q: %+v, %v; want %v saying %q", raw, got, err, auth.ErrOverride, says)
		}
	}
}

func TestDeprecation(t *testing.T) {
	for override, says := range map[auth.Override]string{
		{}:                           "",
		{Present: true}:              "deprecated and false, which changes nothing",
		{Present: true, Value: true}: "deprecated: it is honored",
	} {
		got := override.Deprecation()
		if (says == "") != (got == "") || !strings.Contains(got, says) || (got != "" && !strings.Contains(got, key)) {
			t.Errorf("%+v: %q, want something saying %q and the key", override, got, says)
		}
	}
}
