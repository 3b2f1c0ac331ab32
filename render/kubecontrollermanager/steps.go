// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"embed"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Steps returns the loops that run after kube-apiserver's.
func Steps(s *inputs.Settings) []loop.Step {
	return librarygo.StaticPod{
		Operator: librarygo.KubeControllerManager, Pod: StaticPod(s), Nodes: s.NodeNames(), Resources: resources, Wanted: s.Profile.Includes,
		Observers: observers(s),
		Desired: func(ctx context.Context, session *store.Session) ([]runtime.Object, error) {
			return desired(ctx, s, session)
		},
		Writes: store.ConfigMaps(namespace, written...),
		Copies: syncRules(),
	}.Steps()
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

// written are the ConfigMaps that desired returns.
var written = []string{
	"config", "cluster-policy-controller-config", "recycler-config", "serviceaccount-ca",
	"controller-manager-kubeconfig", "kube-controller-cert-syncer-kubeconfig", "kube-controller-manager-pod", "trusted-ca-bundle",
}

// desired returns the operator's own objects of a revision.
func desired(ctx context.Context, s *inputs.Settings, session *store.Session) ([]runtime.Object, error) {
	found, err := observe.ReadClientConfig(ctx, session, librarygo.KubeControllerManager, namespace)
	if err != nil {
		return nil, err
	}
	if _, has, err := unstructured.NestedSlice(found.Observed, "extendedArguments", "cluster-name"); err != nil || !has {
		return nil, errors.Join(fmt.Errorf("extendedArguments.cluster-name: %w", observe.ErrNotObserved), err)
	}
	config := observe.Merge(defaults(s), observe.Select(found.Observed, "extendedArguments", "projectConfig", "serviceServingCert"))
	policy := observe.Merge(policyDefaults(found.Serving), observe.Select(found.Observed, "featureGates", "servingInfo"))
	pod, err := podFor(s, config, found)
	if err != nil {
		return nil, err
	}
	client, err := found.ConfigMaps(s, namespace, component, "controller-manager-kubeconfig", "kube-controller-cert-syncer-kubeconfig")
	if err != nil {
		return nil, err
	}
	list := []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "trusted-ca-bundle",
		Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": "true"},
	}}}
	var errs []error
	add := func(c *corev1.ConfigMap, err error) { list, errs = append(list, c), append(errs, err) }
	for _, c := range client {
		add(c, nil)
	}
	add(podtemplate.YAML(namespace, "config", "config.yaml", config))
	add(podtemplate.YAML(namespace, "cluster-policy-controller-config", "config.yaml", policy))
	add(podtemplate.ConfigMap(namespace, "kube-controller-manager-pod", pod, s.Version))
	if hasRecycler(s) {
		add(podtemplate.YAML(namespace, "recycler-config", "recycler-pod.yaml", recycler(s)))
	}
	return list, errors.Join(errs...)
}

// StaticPod returns the static pod of kube-controller-manager and what its files are made of (U-REN-18). The sidecars
// have no token. service-ca is optional, because the service CA operator does not run yet, as are objects of profile
// openshift and the recycler.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "kube-controller-manager-pod", Namespace: namespace,
		ConfigMaps: []staticpods.Resource{
			{Name: "kube-controller-manager-pod"},
			{Name: "config"},
			{Name: "cluster-policy-controller-config"},
			{Name: "controller-manager-kubeconfig"},
			{Name: "cloud-config", Optional: true},
			{Name: "kube-controller-cert-syncer-kubeconfig", Optional: true},
			{Name: "serviceaccount-ca"},
			{Name: "service-ca", Optional: true},
			{Name: "recycler-config", Optional: true},
		},
		Secrets: []staticpods.Resource{{Name: "service-account-private-key"}, {Name: "serving-cert", Optional: true}},
		CertDir: "kube-controller-manager-certs",
		CertConfigMaps: []staticpods.Resource{
			{Name: "aggregator-client-ca"}, {Name: "client-ca"}, {Name: "trusted-ca-bundle", Optional: true},
		},
		CertSecrets: []staticpods.Resource{
			{Name: "kube-controller-manager-client-cert-key"}, {Name: "csr-signer"}, {Name: podtemplate.RecoveryCertificate, Optional: true},
		},
	}
}
