package etcdguard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/etcdguard"
)

const key = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"

// Every form is tested where it is read, in patch/unsupportedconfig.
func TestReadOverride(t *testing.T) {
	for raw, want := range map[string]etcdguard.Override{
		"":                             {},
		`{"other":true}`:               {},
		`{"` + key + `":"true"}`:       {Present: true, Value: true},
		"other: 1\n" + key + ": false": {Present: true},
	} {
		if got, err := etcdguard.ReadOverride([]byte(raw)); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

func TestReadOverrideErrors(t *testing.T) {
	for raw, says := range map[string]string{
		"[]":                        "spec.unsupportedConfigOverrides: not an object",
		`{"` + key + `":"perhaps"}`: "spec.unsupportedConfigOverrides." + key + ` is "perhaps"; want true or false`,
	} {
		got, err := etcdguard.ReadOverride([]byte(raw))
		if !errors.Is(err, etcdguard.ErrOverride) || !strings.Contains(err.Error(), says) || got != (etcdguard.Override{}) {
			t.Errorf("%q: %+v, %v; want %v saying %q", raw, got, err, etcdguard.ErrOverride, says)
		}
	}
}
