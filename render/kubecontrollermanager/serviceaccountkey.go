// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// File names of the key, and the annotation with the time from which the next key may be used (U-REN-14).
const (
	privateKeyFile = "service-account.key"
	publicKeyFile  = "service-account.pub"
	readyToUse     = "kube-controller-manager.openshift.io/ready-to-use"
)

// serviceAccountKey returns the loop for the signing key of service account tokens. The first key needs no delay, where
// the stock operator delays new keys by five minutes.
func serviceAccountKey() loop.Loop {
	return loop.Loop{
		Name: component + ": key of ServiceAccount tokens",
		Writes: append(append(store.Secrets(nextKey.Namespace, nextKey.Name), store.Secrets(key.Namespace, key.Name)...),
			store.ConfigMaps(publicKeys.Namespace, publicKeys.Name)...),
		New: func(session *store.Session) (loop.Sync, error) {
			return func(ctx context.Context) error {
				next, err := session.Kube().CoreV1().Secrets(nextKey.Namespace).Get(ctx, nextKey.Name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					next, err = newKey()
				}
				if err != nil {
					return err
				}
				if err := librarygo.ApplySecret(ctx, session, next); err != nil {
					return err
				}
				if err := librarygo.ApplySecret(ctx, session, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: next.Annotations},
					Type:       corev1.SecretTypeOpaque,
					Data:       next.Data,
				}); err != nil {
					return err
				}
				return librarygo.ApplyConfigMap(ctx, session, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: publicKeys.Namespace, Name: publicKeys.Name},
					Data:       map[string]string{"service-account-001.pub": string(next.Data[publicKeyFile])},
				})
			}, nil
		},
	}
}

func newKey() (*corev1.Secret, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: nextKey.Namespace, Name: nextKey.Name,
			Annotations: map[string]string{readyToUse: time.Now().UTC().Format(time.RFC3339)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			privateKeyFile: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}),
			publicKeyFile:  pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: public}),
		},
	}, nil
}
