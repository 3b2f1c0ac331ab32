// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"embed"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
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

// ErrWrongEndpoints is returned if the endpoints are not those of the nodes.
var ErrWrongEndpoints = errors.New("the endpoints are not those of the nodes")

// desired returns the operator's own objects of a revision.
func desired(ctx context.Context, s *inputs.Settings, session *store.Session) ([]runtime.Object, error) {
	observed, err := librarygo.ObservedConfig(ctx, session, librarygo.Etcd)
	if err != nil {
		return nil, err
	}
	tls, err := tlsOf(observed)
	if err != nil {
		return nil, err
	}
	network, err := session.Config().ConfigV1().Networks().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all, err := members(s, network)
	if err != nil {
		return nil, err
	}
	// kube-apiserver uses the endpoints, the pod uses the nodes: both must match.
	written, err := session.Kube().CoreV1().ConfigMaps(endpoints.Namespace).Get(ctx, endpoints.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !maps.Equal(written.Data, endpointsOf(all)) {
		return nil, ErrWrongEndpoints
	}
	infrastructure, err := session.Config().ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	env := environment(all, infrastructure, tls, s.Images[component])
	pod, err := podtemplate.ConfigMap(namespace, "etcd-pod", podFor(s, all, env, tls), s.Version)
	if err != nil {
		return nil, err
	}
	return []runtime.Object{pod, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-scripts"},
		Data:       map[string]string{"etcd.env": shellExports(env)},
	}}, nil
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
