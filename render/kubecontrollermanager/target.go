// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/store"
)

// targetConfig returns the loop that writes the operator's own objects of a revision.
func targetConfig(s *inputs.Settings) loop.Loop {
	return librarygo.TargetConfig(component+": target config", librarygo.KubeControllerManager, namespace, []string{
		"config", "cluster-policy-controller-config", "recycler-config", "serviceaccount-ca",
		"controller-manager-kubeconfig", "kube-controller-cert-syncer-kubeconfig", "kube-controller-manager-pod", "trusted-ca-bundle",
	}, func(ctx context.Context, session *store.Session) ([]*corev1.ConfigMap, error) {
		found, err := observe.ReadClientConfig(ctx, session, librarygo.KubeControllerManager, namespace)
		if err != nil {
			return nil, err
		}
		return configMapsFor(s, found)
	})
}

func configMapsFor(s *inputs.Settings, found observe.ClientConfig) ([]*corev1.ConfigMap, error) {
	if _, has, err := unstructured.NestedSlice(found.Observed, "extendedArguments", "cluster-name"); err != nil || !has {
		return nil, errors.Join(fmt.Errorf("extendedArguments.cluster-name: %w", observe.ErrNotObserved), err)
	}
	config := observe.Merge(defaults(s), observe.Select(found.Observed, "extendedArguments", "projectConfig", "serviceServingCert"))
	policy := observe.Merge(policyDefaults(found.Serving), observe.Select(found.Observed, "featureGates", "servingInfo"))
	server, err := podtemplate.Server(found.Infrastructure, s.Profile)
	if err != nil {
		return nil, err
	}
	pod, err := podFor(s, config, found)
	if err != nil {
		return nil, err
	}
	const client = podtemplate.CertDir + "/secrets/kube-controller-manager-client-cert-key/tls"
	var list []*corev1.ConfigMap
	var errs []error
	add := func(c *corev1.ConfigMap, err error) { list, errs = append(list, c), append(errs, err) }
	add(configMap("config", "config.yaml", config))
	add(configMap("cluster-policy-controller-config", "config.yaml", policy))
	add(bundle(store.Object{Namespace: namespace, Name: "serviceaccount-ca"}, found.ServiceAccountCA), nil)
	add(podtemplate.Kubeconfig{
		Cluster: "lb-int", User: component, Server: server,
		CA:   podtemplate.ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt",
		Cert: client + ".crt", Key: client + ".key",
	}.ConfigMap(namespace, "controller-manager-kubeconfig"))
	add(podtemplate.ConfigMap(namespace, "kube-controller-manager-pod", pod, s.Version))
	if s.Profile == inputs.OpenShift {
		add(podtemplate.LoopbackKubeconfig(component).ConfigMap(namespace, "kube-controller-cert-syncer-kubeconfig"))
	}
	if hasRecycler(s) {
		add(configMap("recycler-config", "recycler-pod.yaml", recycler(s)))
	}
	add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "trusted-ca-bundle",
		Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": "true"},
	}}, nil)
	return list, errors.Join(errs...)
}

func configMap(name, key string, content any) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/%s: %w", namespace, name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{key: string(text)},
	}, nil
}
