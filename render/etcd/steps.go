// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"embed"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

//go:embed resources
var resources embed.FS

// Steps returns etcd's loops in order.
func Steps(s *inputs.Settings) []loop.Step {
	return []loop.Step{
		loop.Once(librarygo.CertRotation(component+": certificates", certificates(s)...)),
		loop.Once(collectCertificates(s)),
		loop.Once(writeEndpoints(s)),
		loop.Once(librarygo.StaticResources(component+": static resources", librarygo.Etcd, resources, s.Profile.Includes)),
		loop.Cycle(4,
			librarygo.ConfigObservation(component+": config observation", librarygo.Etcd, observe.TLSProfile),
			targetConfig(s),
			librarygo.ResourceSync(component+": resource sync", librarygo.Etcd, syncRules()...),
		),
		loop.Once(librarygo.Revision(component+": revision", librarygo.Etcd, namespace, configMaps, secrets)),
		loop.Once(librarygo.NodeStatus(component+": revision of the nodes", librarygo.Etcd, s.NodeNames()...)),
	}
}

// syncRules returns the copies for etcd's operator and for kube-apiserver (U-REN-28).
func syncRules() []librarygo.SyncRule {
	to := func(namespace, name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	return []librarygo.SyncRule{
		{To: to(operatorNamespace, "etcd-ca-bundle"), From: signerCA},
		{To: to(configNamespace, "etcd-ca-bundle"), From: signerCA},
		{To: to(namespace, "etcd-serving-ca"), From: signerCA},
		{To: to(namespace, "etcd-peer-client-ca"), From: signerCA},
		{To: to(configNamespace, "etcd-serving-ca"), From: signerCA},
		{To: to(namespace, "etcd-metrics-proxy-serving-ca"), From: metricsCA},
		{To: to(namespace, "etcd-metrics-proxy-client-ca"), From: metricsCA},
		{To: to(operatorNamespace, "etcd-metric-serving-ca"), From: metricsCA},
		{To: to(configNamespace, "etcd-metric-serving-ca"), From: metricsCA},
		{Secret: true, To: to(operatorNamespace, "etcd-client"), From: client},
		{Secret: true, To: to(configNamespace, "etcd-client"), From: client},
		{Secret: true, To: to(operatorNamespace, "etcd-metric-client"), From: metricsClient},
		{Secret: true, To: to(configNamespace, "etcd-metric-client"), From: metricsClient},
	}
}

// Objects of a revision, and certificates without a revision (U-REN-18). The operator writes the pod for a restore.
var (
	configMaps     = []staticpods.Resource{{Name: "etcd-pod"}, {Name: endpoints.Name}, {Name: allBundles.Name}}
	secrets        = []staticpods.Resource{{Name: allCerts.Name}}
	certConfigMaps = []staticpods.Resource{
		{Name: "restore-etcd-pod", Optional: true}, {Name: "etcd-scripts"}, {Name: allBundles.Name},
	}
	certSecrets = []staticpods.Resource{{Name: allCerts.Name}}
)

// StaticPod returns the static pod of etcd and what its files are made of.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "etcd-pod", Namespace: namespace,
		ConfigMaps: configMaps, Secrets: secrets,
		CertDir: "etcd-certs", CertConfigMaps: certConfigMaps, CertSecrets: certSecrets,
	}
}
