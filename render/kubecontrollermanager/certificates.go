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

// Certificates returns what must be there before kube-apiserver's loops run, each once in this order: the CA that signs certificate
// requests and what trusts it, and the key that signs ServiceAccount tokens.
func Certificates(s *inputs.Settings) loop.Step {
	return loop.Step{Loops: []loop.Loop{
		rotation(s),
		requestSigner(),
		serviceAccountKey(),
		librarygo.ResourceSync(component+": bundle for others", librarygo.KubeControllerManager,
			librarygo.SyncRule{To: sharedControllerCA, From: controllerCA}),
	}}
}

// rotation returns the loop for the CA of certificate requests, an intermediate one. Nobody renews it, so it lasts as long as was
// asked for, where the stock operator has 30 days, and 60 for its signer (U-REN-13).
//
// The signer also signs the certificate of the sidecars of profile openshift.
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

// Recovery returns the client certificate of the sidecars in the namespace of a component. kube-apiserver trusts its signer, since
// it trusts the CA of certificate requests. kube-controller-manager owns all of them: a second owner would write its name over the first.
func RecoveryCertificate(s *inputs.Settings, namespace string) librarygo.Certificate {
	return librarygo.Certificate{
		Signer: signerSigner, SignerValidity: s.Validity, Bundle: signerSignerCA,
		Target: store.Object{Namespace: namespace, Name: podtemplate.RecoveryCertificate}, Validity: s.Validity,
		Client:    podtemplate.RecoveryUser(namespace),
		Component: component,
	}
}

// requestSigner returns the loop that gives kube-controller-manager its CA, without the chain, because the controller that signs
// requests takes one certificate, and that puts both CAs into the bundle that kube-apiserver trusts. An earlier CA stays in it until it ends:
// kubelets have certificates that it has signed.
func requestSigner() loop.Loop {
	return loop.Loop{
		Name: component + ": signer of certificate requests",
		Writes: append(store.ConfigMaps(operatorNamespace, signerCA.Name, controllerCA.Name),
			store.Secrets(namespace, activeSigner.Name)...),
		New: func(session *store.Session) (loop.Sync, error) {
			return func(ctx context.Context) error {
				chain, err := session.Kube().CoreV1().Secrets(signer.Namespace).Get(ctx, signer.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				above, err := session.Kube().CoreV1().ConfigMaps(signerSignerCA.Namespace).Get(ctx, signerSignerCA.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				certificate, err := cabundle.FirstCertificate(chain.Data[corev1.TLSCertKey])
				if err != nil {
					return fmt.Errorf("secret %s: %s: %w", signer, corev1.TLSCertKey, err)
				}
				earlier, err := session.Kube().CoreV1().ConfigMaps(signerCA.Namespace).Get(ctx, signerCA.Name, metav1.GetOptions{})
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
				for _, b := range []*corev1.ConfigMap{bundle(signerCA, signers), bundle(controllerCA, all)} {
					if err := librarygo.ApplyConfigMap(ctx, session, b); err != nil {
						return err
					}
				}
				return librarygo.ApplySecret(ctx, session, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: activeSigner.Namespace, Name: activeSigner.Name, Annotations: chain.Annotations},
					Type:       corev1.SecretTypeTLS,
					Data: map[string][]byte{
						corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: chain.Data[corev1.TLSPrivateKeyKey],
					},
				})
			}, nil
		},
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
