// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift/api/annotations"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

// Certificates returns the loops that run before kube-apiserver's: CA of certificate requests, and token signing key.
func Certificates(s *inputs.Settings) loop.Step {
	return loop.Step{Loops: []loop.Loop{
		rotation(s),
		requestSigner(),
		serviceAccountKey(),
		librarygo.ResourceSync(component+": bundle for others", librarygo.KubeControllerManager,
			librarygo.SyncRule{To: sharedControllerCA, From: controllerCA}),
	}}
}

// rotation returns the loop for the intermediate CA of certificate requests, whose signer also signs the certificate of
// the sidecars of profile openshift. The CA has the validity of the settings; the stock operator has 30 days, and 60
// for its signer (U-REN-13).
func rotation(s *inputs.Settings) loop.Loop {
	certificates := []librarygo.Certificate{{
		Signer: signerSigner, SignerValidity: s.Validity, Bundle: signerSignerCA,
		Target: signer, Validity: s.Validity,
		CA:        "kube-csr-signer",
		Component: component,
	}}
	if s.Profile == inputs.OpenShift {
		certificates = append(certificates, RecoveryCertificate(s, namespace))
	}
	return librarygo.CertRotation(component+": certificates", certificates...)
}

// RecoveryCertificate returns the client certificate of a component's sidecars. kube-controller-manager owns all of
// them, because each owner writes its name on the signer.
func RecoveryCertificate(s *inputs.Settings, namespace string) librarygo.Certificate {
	return librarygo.Certificate{
		Signer: signerSigner, SignerValidity: s.Validity, Bundle: signerSignerCA,
		Target: store.Object{Namespace: namespace, Name: podtemplate.RecoveryCertificate}, Validity: s.Validity,
		Client:    podtemplate.RecoveryUser(namespace),
		Component: component,
	}
}

// requestSigner returns the loop that writes kube-controller-manager's CA, without the chain, and its bundles. Earlier
// CAs stay until they expire, because they signed certificates of kubelets.
func requestSigner() loop.Loop {
	return loop.Loop{
		Name: component + ": signer of certificate requests",
		Writes: append(store.ConfigMaps(operatorNamespace, signerCA.Name, controllerCA.Name),
			store.Secrets(namespace, activeSigner.Name)...),
		New: loop.Stateless(func(ctx context.Context, session *store.Session) error {
			core := session.Kube().CoreV1()
			chain, err := core.Secrets(signer.Namespace).Get(ctx, signer.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			above, err := core.ConfigMaps(signerSignerCA.Namespace).Get(ctx, signerSignerCA.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			certificate, err := cabundle.FirstCertificate(chain.Data[corev1.TLSCertKey])
			if err != nil {
				return fmt.Errorf("secret %s: %s: %w", signer, corev1.TLSCertKey, err)
			}
			earlier, err := core.ConfigMaps(signerCA.Namespace).Get(ctx, signerCA.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				earlier, err = &corev1.ConfigMap{}, nil
			}
			if err != nil {
				return err
			}
			signers, err := cabundle.UnionUnexpired(time.Now(), string(certificate), earlier.Data["ca-bundle.crt"])
			if err != nil {
				return fmt.Errorf("configmap %s: %w", signerCA, err)
			}
			all, err := cabundle.Union(signers, above.Data["ca-bundle.crt"])
			if err != nil {
				return fmt.Errorf("configmap %s: %w", controllerCA, err)
			}
			return librarygo.Apply(ctx, session, bundle(signerCA, signers), bundle(controllerCA, all), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: activeSigner.Namespace, Name: activeSigner.Name, Annotations: chain.Annotations},
				Type:       corev1.SecretTypeTLS,
				Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: chain.Data[corev1.TLSPrivateKeyKey]},
			})
		}),
	}
}

func bundle(o store.Object, pem string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name,
			Annotations: map[string]string{annotations.OpenShiftComponent: component},
		},
		Data: map[string]string{"ca-bundle.crt": pem},
	}
}
