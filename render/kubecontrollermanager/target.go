// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

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
