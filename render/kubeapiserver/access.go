// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// Objects of the access from outside of the cluster.
var (
	AdminClientCertificate = clusterAdmin
	AdminServerCA          = store.Object{Namespace: operatorNamespace, Name: "loadbalancer-serving-ca"}
)

// AdminCertificates returns the loop that signs the administrator's client certificate and the external serving
// certificate. The first of Steps keeps them.
func AdminCertificates(s *inputs.Settings) loop.Step {
	var wanted []librarygo.Certificate
	for _, c := range certificates(s) {
		if c.Target == AdminClientCertificate || c.Target == (store.Object{Namespace: Namespace, Name: externalServing}) {
			wanted = append(wanted, c)
		}
	}
	return loop.Once(librarygo.CertRotation(component+": access", wanted...))
}

// AdminKubeconfig returns the administrator's kubeconfig from the objects of AdminCertificates.
func AdminKubeconfig(infrastructure *configv1.Infrastructure, client *corev1.Secret, bundle *corev1.ConfigMap) ([]byte, error) {
	data, err := kubeconfigs(infrastructure, "admin", client, bundle.Data[bundleKey], ExternalKubeconfig)
	return data[ExternalKubeconfig], err
}
