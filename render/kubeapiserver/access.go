package kubeapiserver

import (
	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// The objects of which the administrator's kubeconfig is made before there is a cluster.
var (
	AdminClientCertificate = clusterAdmin
	AdminServerCA = store.Object{Namespace: operatorNamespace, Name: "loadbalancer-serving-ca"}
)

// Access returns the loop that signs for the administrator, and for kube-apiserver by the name that clients outside of the cluster use:
// a part of the first of Steps, which keeps what it finds.
func AdminCertificates(s *inputs.Settings) loop.Step {
	var wanted []librarygo.Certificate
	for _, c := range certificates(s) {
		if c.Target == AdminClientCertificate || c.Target == (store.Object{Namespace: Namespace, Name: "external-loadbalancer-serving-certkey"}) {
			wanted = append(wanted, c)
		}
	}
	return loop.Once(librarygo.CertRotation(component+": access", wanted...))
}

// AccessKubeconfig returns the administrator's kubeconfig from the objects that Access has written.
func AdminKubeconfig(infrastructure *configv1.Infrastructure, client *corev1.Secret, bundle *corev1.ConfigMap) ([]byte, error) {
	data, err := kubeconfigs(infrastructure, "admin", client, bundle.Data[bundleKey], ExternalKubeconfig)
	return data[ExternalKubeconfig], err
}
