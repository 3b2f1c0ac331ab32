// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

const (
	nextSigningKey = "next-bound-service-account-signing-key"
	signingKey     = "bound-service-account-signing-key"
	publicKeys     = "bound-sa-token-signing-certs"
)

// boundTokens returns the loop that makes the signing key of service account tokens and publishes the public key.
//
// The operator waits until every node has the public key. Here there is no earlier key, so both are written at once.
func boundTokens() loop.Loop {
	return loop.Loop{
		Name: component + ": bound tokens",
		Writes: slices.Concat(store.Secrets(operatorNamespace, nextSigningKey), store.ConfigMaps(Namespace, publicKeys),
			store.Secrets(Namespace, signingKey)),
		New: loop.Stateless(func(ctx context.Context, s *store.Session) error {
			next, err := s.Kube().CoreV1().Secrets(operatorNamespace).Get(ctx, nextSigningKey, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				next, err = newSigningKey()
			}
			if err != nil {
				return fmt.Errorf("key of bound tokens: %w", err)
			}
			public, err := s.Kube().CoreV1().ConfigMaps(Namespace).Get(ctx, publicKeys, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("public keys of bound tokens: %w", err)
			}
			return librarygo.Apply(ctx, s, next, withPublicKey(public, string(next.Data[kubecontrollermanager.PublicKeyFile])), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: signingKey}, Type: next.Type, Data: next.Data,
			})
		}),
	}
}

// withPublicKey returns the ConfigMap with the key added. Other keys stay, because their tokens are still valid.
func withPublicKey(public *corev1.ConfigMap, key string) *corev1.ConfigMap {
	required := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: publicKeys}, Data: map[string]string{}}
	if public != nil {
		maps.Copy(required.Data, public.Data)
	}
	for _, known := range required.Data {
		if known == key {
			return required
		}
	}
	for i := len(required.Data) + 1; ; i++ {
		name := fmt.Sprintf("service-account-%03d.pub", i)
		if _, taken := required.Data[name]; !taken {
			required.Data[name] = key
			return required
		}
	}
}

func newSigningKey() (*corev1.Secret, error) {
	data, err := kubecontrollermanager.NewTokenKey(4096)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: nextSigningKey}, Type: corev1.SecretTypeOpaque, Data: data,
	}, err
}
