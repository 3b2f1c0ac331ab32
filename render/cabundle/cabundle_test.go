// SPDX-License-Identifier: Apache-2.0

package cabundle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/fixture"
)

func TestUnion(t *testing.T) {
	a, b, c := fixture.CA(t, "a"), fixture.CA(t, "b"), fixture.CA(t, "c")
	for name, test := range map[string]struct {
		bundles []string
		want    string
		err     error
	}{
		"in order":     {bundles: []string{b, a + c}, want: b + a + c},
		"each once":    {bundles: []string{a + b, b + c, a}, want: a + b + c},
		"an empty one": {bundles: []string{"", a}, want: a},
		"none":         {err: cabundle.ErrEmpty},
		"empty ones":   {bundles: []string{"", ""}, err: cabundle.ErrEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cabundle.Union(test.bundles...)
			if !errors.Is(err, test.err) || got != test.want {
				t.Errorf("error %v, want %v; got\n%s\nwant\n%s", err, test.err, got, test.want)
			}
		})
	}
	if _, err := cabundle.Union(a, "no PEM"); err == nil {
		t.Error("invalid PEM must be an error")
	}
}

func TestValid(t *testing.T) {
	a, b := fixture.CA(t, "a"), fixture.CA(t, "b")
	if got, err := cabundle.UnionUnexpired(time.Now(), b, a+b); err != nil || got != b+a {
		t.Errorf("error %v, got\n%s", err, got)
	}
	if got, err := cabundle.UnionUnexpired(time.Now().AddDate(11, 0, 0), a, b); !errors.Is(err, cabundle.ErrEmpty) {
		t.Errorf("error %v, got\n%s", err, got)
	}
}

func TestFirst(t *testing.T) {
	a, b := fixture.CA(t, "a"), fixture.CA(t, "b")
	got, err := cabundle.FirstCertificate([]byte(a + b))
	if err != nil || string(got) != a {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, a)
	}
	if _, err := cabundle.FirstCertificate(nil); err == nil {
		t.Error("an empty chain must be an error")
	}
}
