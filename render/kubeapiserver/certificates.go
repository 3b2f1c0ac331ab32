// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/store"
)

// certificates returns those of kube-apiserver's operator in its order, and two of the installer: for the administrator
// and for joining kubelets. All have the validity of the settings (R-REN-10).
func certificates(s *inputs.Settings) []librarygo.Certificate {
	cluster := s.Cluster
	in := func(namespace, name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	signed := func(by string, bundle store.Object, description string) librarygo.Certificate {
		return librarygo.Certificate{
			Signer: in(operatorNamespace, by), SignerValidity: s.Validity, Bundle: bundle, Validity: s.Validity,
			Component: component, Description: description,
		}
	}
	client := func(c librarygo.Certificate, target store.Object, name string, groups ...string) librarygo.Certificate {
		c.Target, c.Client = target, &user.DefaultInfo{Name: name, Groups: groups}
		return c
	}
	serving := func(c librarygo.Certificate, target string, hosts func() ([]string, error)) librarygo.Certificate {
		c.Target, c.Hosts = in(Namespace, target), hosts
		return c
	}
	loadBalancer := signed("loadbalancer-serving-signer", AdminServerCA, "kube-apiserver behind load balancers.")
	controlPlane := signed("kube-control-plane-signer", in(operatorNamespace, "kube-control-plane-signer-ca"), "The control plane as a client of kube-apiserver.")
	return []librarygo.Certificate{
		client(signed("aggregator-client-signer", in(managedNamespace, "kube-apiserver-aggregator-client-ca"), "kube-apiserver as a client of aggregated API servers."),
			in(Namespace, "aggregator-client"), "system:openshift-aggregator"),
		client(signed("kube-apiserver-to-kubelet-signer", in(operatorNamespace, "kube-apiserver-to-kubelet-client-ca"), "kube-apiserver as a client of kubelets."),
			in(Namespace, "kubelet-client"), "system:kube-apiserver", "kube-master"),
		serving(signed("localhost-serving-signer", in(operatorNamespace, "localhost-serving-ca"), "kube-apiserver for clients on the same node."),
			"localhost-serving-cert-certkey", func() ([]string, error) { return LocalHostnames(cluster.Network), nil }),
		serving(signed("service-network-serving-signer", in(operatorNamespace, "service-network-serving-ca"), "kube-apiserver for pods."),
			"service-network-serving-certkey", func() ([]string, error) { return ServiceHostnames(cluster.Network) }),
		serving(loadBalancer, externalServing, func() ([]string, error) { return ExternalHostnames(cluster.Infrastructure) }),
		serving(loadBalancer, "internal-loadbalancer-serving-certkey", func() ([]string, error) { return InternalHostnames(cluster.Infrastructure) }),
		serving(signed("localhost-recovery-serving-signer", in(operatorNamespace, "localhost-recovery-serving-ca"), "kube-apiserver for recovery on the same node."),
			"localhost-recovery-serving-certkey", func() ([]string, error) { return []string{recoveryHost}, nil }),
		client(controlPlane, in(managedNamespace, "kube-controller-manager-client-cert-key"), "system:kube-controller-manager"),
		client(controlPlane, in(managedNamespace, "kube-scheduler-client-cert-key"), "system:kube-scheduler"),
		client(controlPlane, in(Namespace, nodeAdminCertificate), "system:control-plane-node-admin", "system:masters"),
		client(controlPlane, in(Namespace, checkEndpointsCertificate), "system:serviceaccount:"+Namespace+":check-endpoints"),
		client(signed("node-system-admin-signer", in(operatorNamespace, "node-system-admin-ca"), "The administrator by the kubeconfigs on control-plane nodes."),
			nodeSystemAdmin, "system:admin", "system:masters"),
		client(signed("admin-kubeconfig-signer", in(configNamespace, "admin-kubeconfig-client-ca"), "The cluster's administrator."),
			clusterAdmin, "system:admin", "system:masters"),
		// The groups are those of the ServiceAccount's token, which approvers of joining kubelets compare.
		client(signed("kubelet-bootstrap-kubeconfig-signer", in(managedNamespace, "kubelet-bootstrap-kubeconfig"), "Kubelets that join."),
			nodeBootstrapper, bootstrapper, "system:serviceaccounts:"+BootstrapNamespace, "system:serviceaccounts"),
	}
}

// recoveryHost is the server name of the revisioned certificate, for use when the others have expired.
const recoveryHost = "localhost-recovery"

const (
	externalServing           = "external-loadbalancer-serving-certkey"
	nodeAdminCertificate      = "control-plane-node-admin-client-cert-key"
	checkEndpointsCertificate = "check-endpoints-client-cert-key"
)

var (
	nodeSystemAdmin  = store.Object{Namespace: operatorNamespace, Name: "node-system-admin-client"}
	clusterAdmin     = store.Object{Namespace: operatorNamespace, Name: "admin-kubeconfig-client"}
	nodeBootstrapper = store.Object{Namespace: BootstrapNamespace, Name: "node-bootstrapper-client-cert-key"}
)
