// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

func TestWithPublicKey(t *testing.T) {
	for _, tt := range []struct {
		name  string
		there map[string]string
		want  map[string]string
	}{
		{name: "the first", want: map[string]string{"service-account-001.pub": "new"}},
		{
			name: "another", there: map[string]string{"service-account-001.pub": "old"},
			want: map[string]string{"service-account-001.pub": "old", "service-account-002.pub": "new"},
		},
		{name: "the same", there: map[string]string{"service-account-001.pub": "new"}, want: map[string]string{"service-account-001.pub": "new"}},
		{
			name: "a gap", there: map[string]string{"service-account-002.pub": "old"},
			want: map[string]string{"service-account-002.pub": "old", "service-account-003.pub": "new"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var there *corev1.ConfigMap
			if tt.there != nil {
				there = fixture.ConfigMap(Namespace, publicKeys, tt.there)
			}
			if diff := cmp.Diff(tt.want, withPublicKey(there, "new").Data); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSigningKey(t *testing.T) {
	st := runDefault(t, inputs.Kubernetes)
	private, err := keyutil.ParsePrivateKeyPEM(fixture.SecretData(t, st, store.Object{Namespace: Namespace, Name: "bound-service-account-signing-key"})["service-account.key"])
	if err != nil {
		t.Fatal(err)
	}
	key := private.(*rsa.PrivateKey)
	block, _ := pem.Decode([]byte(fixture.ConfigMapData(t, st, Namespace, "bound-sa-token-signing-certs-1")["service-account-001.pub"]))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil || !key.PublicKey.Equal(public) {
		t.Errorf("the published key is not that of the private key: %v", err)
	}
	if bits := key.N.BitLen(); bits != 4096 {
		t.Errorf("the key has %d bits", bits)
	}
}
