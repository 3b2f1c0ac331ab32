// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/cabundle"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/store"
)

const managedNamespace = "openshift-config-managed"

// ClientConfig is the input of the target config of a client of kube-apiserver.
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
