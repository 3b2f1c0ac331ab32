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
	fixed := func(names ...string) func() ([]string, error) { return func() ([]string, error) { return names, nil } }

	type signer struct {
		secret, bundle store.Object
		description    string
	}
	signs := func(secret string, bundle store.Object, description string) signer {
		return signer{in(operatorNamespace, secret), bundle, description}
	}
	var (
		aggregator = signs("aggregator-client-signer", in(managedNamespace, "kube-apiserver-aggregator-client-ca"),
			"kube-apiserver as a client of aggregated API servers.")
		toKubelet = signs("kube-apiserver-to-kubelet-signer", in(operatorNamespace, "kube-apiserver-to-kubelet-client-ca"),
			"kube-apiserver as a client of kubelets.")
		localhost = signs("localhost-serving-signer", in(operatorNamespace, "localhost-serving-ca"),
			"kube-apiserver for clients on the same node.")
		serviceNetwork = signs("service-network-serving-signer", in(operatorNamespace, "service-network-serving-ca"),
			"kube-apiserver for pods.")
		loadBalancer = signs("loadbalancer-serving-signer", in(operatorNamespace, "loadbalancer-serving-ca"),
			"kube-apiserver behind load balancers.")
		recovery = signs("localhost-recovery-serving-signer", in(operatorNamespace, "localhost-recovery-serving-ca"),
			"kube-apiserver for recovery on the same node.")
		controlPlane = signs("kube-control-plane-signer", in(operatorNamespace, "kube-control-plane-signer-ca"),
			"The control plane as a client of kube-apiserver.")
		nodeAdmin = signs("node-system-admin-signer", in(operatorNamespace, "node-system-admin-ca"),
			"The administrator by the kubeconfigs on control-plane nodes.")
		admin = signs("admin-kubeconfig-signer", in(configNamespace, "admin-kubeconfig-client-ca"),
			"The cluster's administrator.")
		bootstrap = signs("kubelet-bootstrap-kubeconfig-signer", in(managedNamespace, "kubelet-bootstrap-kubeconfig"),
			"Kubelets that join.")
	)
	client := func(by signer, target store.Object, name string, groups ...string) librarygo.Certificate {
		return librarygo.Certificate{
			Signer: by.secret, Bundle: by.bundle, Target: target, Description: by.description, Client: &user.DefaultInfo{Name: name, Groups: groups},
		}
	}
	serving := func(by signer, target string, hosts func() ([]string, error)) librarygo.Certificate {
		return librarygo.Certificate{Signer: by.secret, Bundle: by.bundle, Target: in(Namespace, target), Description: by.description, Hosts: hosts}
	}
	all := []librarygo.Certificate{
		client(aggregator, in(Namespace, "aggregator-client"), "system:openshift-aggregator"),
		client(toKubelet, in(Namespace, "kubelet-client"), "system:kube-apiserver", "kube-master"),
		serving(localhost, "localhost-serving-cert-certkey",
			func() ([]string, error) { return LocalHostnames(cluster.Network), nil }),
		serving(serviceNetwork, "service-network-serving-certkey",
			func() ([]string, error) { return ServiceHostnames(cluster.Network) }),
		serving(loadBalancer, "external-loadbalancer-serving-certkey",
			func() ([]string, error) { return ExternalHostnames(cluster.Infrastructure) }),
		serving(loadBalancer, "internal-loadbalancer-serving-certkey",
			func() ([]string, error) { return InternalHostnames(cluster.Infrastructure) }),
		serving(recovery, "localhost-recovery-serving-certkey", fixed(recoveryHost)),
		client(controlPlane, in(managedNamespace, "kube-controller-manager-client-cert-key"),
			"system:kube-controller-manager"),
		client(controlPlane, in(managedNamespace, "kube-scheduler-client-cert-key"), "system:kube-scheduler"),
		client(controlPlane, in(Namespace, nodeAdminCertificate),
			"system:control-plane-node-admin", "system:masters"),
		client(controlPlane, in(Namespace, checkEndpointsCertificate),
			"system:serviceaccount:"+Namespace+":check-endpoints"),
		client(nodeAdmin, nodeSystemAdmin, "system:admin", "system:masters"),
		client(admin, clusterAdmin, "system:admin", "system:masters"),
		// The groups are those of the ServiceAccount's token, which approvers of joining kubelets compare.
		client(bootstrap, nodeBootstrapper,
			bootstrapper, "system:serviceaccounts:"+BootstrapNamespace, "system:serviceaccounts"),
	}
	for i := range all {
		all[i].Component = component
		all[i].SignerValidity, all[i].Validity = s.Validity, s.Validity
	}
	return all
}

// recoveryHost is the server name of the revisioned certificate, for use when the others have expired.
const recoveryHost = "localhost-recovery"

const (
	nodeAdminCertificate      = "control-plane-node-admin-client-cert-key"
	checkEndpointsCertificate = "check-endpoints-client-cert-key"
)

var (
	nodeSystemAdmin  = store.Object{Namespace: operatorNamespace, Name: "node-system-admin-client"}
	clusterAdmin     = store.Object{Namespace: operatorNamespace, Name: "admin-kubeconfig-client"}
	nodeBootstrapper = store.Object{Namespace: BootstrapNamespace, Name: "node-bootstrapper-client-cert-key"}
)
