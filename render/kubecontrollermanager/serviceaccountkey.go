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
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

const (
	// PublicKeyFile is the name of the public key among the files of a key pair.
	PublicKeyFile  = "service-account.pub"
	privateKeyFile = "service-account.key"
	// readyToUse is the annotation with the time from which the next key may be used (U-REN-14).
	readyToUse = "kube-controller-manager.openshift.io/ready-to-use"
)

// serviceAccountKey returns the loop for the signing key of service account tokens. The first key needs no delay, where
// the stock operator delays new keys by five minutes.
func serviceAccountKey() loop.Loop {
	return loop.Loop{
		Name: component + ": key of ServiceAccount tokens",
		Writes: append(append(store.Secrets(nextKey.Namespace, nextKey.Name), store.Secrets(key.Namespace, key.Name)...),
			store.ConfigMaps(publicKeys.Namespace, publicKeys.Name)...),
		New: loop.Stateless(func(ctx context.Context, session *store.Session) error {
			next, err := session.Kube().CoreV1().Secrets(nextKey.Namespace).Get(ctx, nextKey.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				next, err = newKey()
			}
			if err != nil {
				return err
			}
			return librarygo.Apply(ctx, session, next,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: next.Annotations},
					Type:       corev1.SecretTypeOpaque,
					Data:       next.Data,
				},
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: publicKeys.Namespace, Name: publicKeys.Name},
					Data:       map[string]string{"service-account-001.pub": string(next.Data[PublicKeyFile])},
				})
		}),
	}
}

func newKey() (*corev1.Secret, error) {
	data, err := NewTokenKey(2048)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: nextKey.Namespace, Name: nextKey.Name,
			Annotations: map[string]string{readyToUse: time.Now().UTC().Format(time.RFC3339)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}, err
}

// NewTokenKey returns the files of a new key pair for ServiceAccount tokens. The stock operators use this type for the
// public key too, though it is a PKIX key.
func NewTokenKey(bits int) (map[string][]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return map[string][]byte{
		privateKeyFile: private, PublicKeyFile: pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: public}),
	}, err
}
