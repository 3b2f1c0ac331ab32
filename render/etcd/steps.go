// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"embed"

	"k8s.io/apimachinery/pkg/runtime"

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
	return append([]loop.Step{
		loop.Once(librarygo.CertRotation(component+": certificates", certificates(s)...)),
		loop.Once(collectCertificates(s)),
		loop.Once(writeEndpoints(s)),
	}, librarygo.StaticPod{
		Operator: librarygo.Etcd, Pod: StaticPod(s), Nodes: s.NodeNames(), Resources: resources, Wanted: s.Profile.Includes,
		Observers: []librarygo.Observer{observe.TLSProfile},
		Desired: func(ctx context.Context, session *store.Session) ([]runtime.Object, error) {
			return desired(ctx, s, session)
		},
		Writes: store.ConfigMaps(namespace, "etcd-pod", "etcd-scripts"),
		Copies: syncRules(),
	}.Steps()...)
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

// StaticPod returns the static pod of etcd and what its files are made of: objects of a revision, and certificates
// without a revision (U-REN-18). The operator writes the pod for a restore.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "etcd-pod", Namespace: namespace,
		ConfigMaps: []staticpods.Resource{{Name: "etcd-pod"}, {Name: endpoints.Name}, {Name: allBundles.Name}},
		Secrets:    []staticpods.Resource{{Name: allCerts.Name}},
		CertDir:    "etcd-certs",
		CertConfigMaps: []staticpods.Resource{
			{Name: "restore-etcd-pod", Optional: true}, {Name: "etcd-scripts"}, {Name: allBundles.Name},
		},
		CertSecrets: []staticpods.Resource{{Name: allCerts.Name}},
	}
}
