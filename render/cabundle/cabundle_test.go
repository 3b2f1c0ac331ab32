// SPDX-License-Identifier: Apache-2.0

package cabundle_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/cabundle"
)

// authority returns a certificate that is valid for ten years.
func authority(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := cert.EncodeCertificates(made)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestUnion(t *testing.T) {
	a, b, c := authority(t, "a"), authority(t, "b"), authority(t, "c")
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
	a, b := authority(t, "a"), authority(t, "b")
	if got, err := cabundle.UnionUnexpired(time.Now(), b, a+b); err != nil || got != b+a {
		t.Errorf("error %v, got\n%s", err, got)
	}
	if got, err := cabundle.UnionUnexpired(time.Now().AddDate(11, 0, 0), a, b); !errors.Is(err, cabundle.ErrEmpty) {
		t.Errorf("error %v, got\n%s", err, got)
	}
}

func TestFirst(t *testing.T) {
	a, b := authority(t, "a"), authority(t, "b")
	got, err := cabundle.FirstCertificate([]byte(a + b))
	if err != nil || string(got) != a {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, a)
	}
	if _, err := cabundle.FirstCertificate(nil); err == nil {
		t.Error("an empty chain must be an error")
	}
}

func ExampleUnion() {
	_, err := cabundle.Union("", "")
	fmt.Println(err)
	// Output: no certificate in any bundle
}
