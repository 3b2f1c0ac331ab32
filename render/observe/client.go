// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/api/annotations"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

const managedNamespace = "openshift-config-managed"

// ServingFile is the path of the serving certificate and key without extension.
const ServingFile = podtemplate.ResourceDir + "/secrets/serving-cert/tls"

// ClientConfig is the input of the target config of a client of kube-apiserver: kube-controller-manager and
// kube-scheduler.
type ClientConfig struct {
	Observed map[string]any
	// Serving reports whether the component's namespace has the Secret serving-cert.
	Serving bool
	// ServiceAccountCA is the bundle by which pods trust kube-apiserver and the routes of the ingress operator.
	ServiceAccountCA string
	Infrastructure   *configv1.Infrastructure
}

// ReadClientConfig reads the input. kube-apiserver's loops must have run.
func ReadClientConfig(ctx context.Context, s *store.Session, operator librarygo.Operator, namespace string) (ClientConfig, error) {
	var c ClientConfig
	var err error
	if c.Observed, err = librarygo.ObservedConfig(ctx, s, operator); err != nil {
		return c, err
	}
	core := s.Kube().CoreV1()
	_, err = core.Secrets(namespace).Get(ctx, "serving-cert", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c, err
	}
	c.Serving = err == nil
	server, err := core.ConfigMaps(managedNamespace).Get(ctx, "kube-apiserver-server-ca", metav1.GetOptions{})
	if err != nil {
		return c, err
	}
	var routes string
	ingress, err := core.ConfigMaps(managedNamespace).Get(ctx, "default-ingress-cert", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c, err
	}
	if err == nil {
		routes = ingress.Data["ca-bundle.crt"]
	}
	if c.ServiceAccountCA, err = cabundle.Union(server.Data["ca-bundle.crt"], routes); err != nil {
		return c, fmt.Errorf("configmap %s/kube-apiserver-server-ca: %w", managedNamespace, err)
	}
	c.Infrastructure, err = s.Config().ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	return c, err
}

// Flags returns the flags of the serving certificate if there is one, of the configuration, and of the TLS profile.
func (c ClientConfig) Flags(config map[string]any) ([]string, error) {
	var serving []string
	if c.Serving {
		serving = []string{"--tls-cert-file=" + ServingFile + ".crt", "--tls-private-key-file=" + ServingFile + ".key"}
	}
	arguments, err := Flags(config, "extendedArguments")
	tls, tlsErr := TLSFlags(c.Observed)
	return slices.Concat(serving, arguments, tls), errors.Join(err, tlsErr)
}

// ConfigMaps returns the bundle of pods and the client's kubeconfig, and in profile openshift that of its sidecars.
func (c ClientConfig) ConfigMaps(s *inputs.Settings, namespace, component, kubeconfig, sidecars string) ([]*corev1.ConfigMap, error) {
	server, err := podtemplate.Server(c.Infrastructure, s.Profile)
	if err != nil {
		return nil, err
	}
	certificate := podtemplate.CertDir + "/secrets/" + component + "-client-cert-key/tls"
	client, err := podtemplate.Kubeconfig{
		Cluster: "lb-int", User: component, Server: server,
		CA:   podtemplate.ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt",
		Cert: certificate + ".crt", Key: certificate + ".key",
	}.ConfigMap(namespace, kubeconfig)
	all := []*corev1.ConfigMap{client, {
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "serviceaccount-ca", Annotations: map[string]string{annotations.OpenShiftComponent: component},
		},
		Data: map[string]string{"ca-bundle.crt": c.ServiceAccountCA},
	}}
	if s.Profile != inputs.OpenShift {
		return all, err
	}
	loopback, loopbackErr := podtemplate.LoopbackKubeconfig(component).ConfigMap(namespace, sidecars)
	return append(all, loopback), errors.Join(err, loopbackErr)
}
