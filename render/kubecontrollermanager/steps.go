// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"embed"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

//go:embed resources
var resources embed.FS

// Steps returns the loops that run after kube-apiserver's.
func Steps(s *inputs.Settings) []loop.Step {
	return []loop.Step{
		loop.Once(librarygo.StaticResources(component+": static resources", librarygo.KubeControllerManager, resources, s.Profile.Includes)),
		loop.Cycle(4,
			librarygo.ConfigObservation(component+": config observation", librarygo.KubeControllerManager, observers(s)...),
			targetConfig(s),
			librarygo.ResourceSync(component+": resource sync", librarygo.KubeControllerManager, syncRules()...),
		),
		loop.Once(librarygo.Revision(component+": revision", librarygo.KubeControllerManager, namespace, configMaps, secrets)),
		loop.Once(librarygo.NodeStatus(component+": revision of the nodes", librarygo.KubeControllerManager, s.NodeNames()...)),
	}
}

// syncRules returns the copies from kube-apiserver's operator, with the client CAs, which are read from files.
func syncRules() []librarygo.SyncRule {
	to := func(name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	from := func(name string) store.Object { return store.Object{Namespace: managedNamespace, Name: name} }
	return []librarygo.SyncRule{
		{Secret: true, To: to("kube-controller-manager-client-cert-key"), From: from("kube-controller-manager-client-cert-key")},
		{To: to("client-ca"), From: from("kube-apiserver-client-ca")},
		{To: to("aggregator-client-ca"), From: from("kube-apiserver-aggregator-client-ca")},
		{To: to("service-ca"), From: from("service-ca")},
	}
}

// Objects with and without a revision (U-REN-18). The sidecars have no token. service-ca is optional, because the
// service CA operator does not run yet, as are objects of profile openshift and the recycler.
var (
	configMaps = []staticpods.Resource{
		{Name: "kube-controller-manager-pod"},
		{Name: "config"},
		{Name: "cluster-policy-controller-config"},
		{Name: "controller-manager-kubeconfig"},
		{Name: "cloud-config", Optional: true},
		{Name: "kube-controller-cert-syncer-kubeconfig", Optional: true},
		{Name: "serviceaccount-ca"},
		{Name: "service-ca", Optional: true},
		{Name: "recycler-config", Optional: true},
	}
	secrets = []staticpods.Resource{
		{Name: "service-account-private-key"},
		{Name: "serving-cert", Optional: true},
	}
	certConfigMaps = []staticpods.Resource{
		{Name: "aggregator-client-ca"}, {Name: "client-ca"}, {Name: "trusted-ca-bundle", Optional: true},
	}
	certSecrets = []staticpods.Resource{
		{Name: "kube-controller-manager-client-cert-key"}, {Name: "csr-signer"}, {Name: podtemplate.RecoveryCertificate, Optional: true},
	}
)

// StaticPod returns the static pod of kube-controller-manager and what its files are made of.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "kube-controller-manager-pod", Namespace: namespace,
		ConfigMaps: configMaps, Secrets: secrets,
		CertDir: "kube-controller-manager-certs", CertConfigMaps: certConfigMaps, CertSecrets: certSecrets,
	}
}
