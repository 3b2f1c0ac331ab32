// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/api/annotations"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return librarygo.TargetConfig(component+": target config", librarygo.KubeScheduler, namespace, []string{
		"config", "serviceaccount-ca", "scheduler-kubeconfig", "kube-scheduler-cert-syncer-kubeconfig",
		"kube-scheduler-pod",
	}, func(ctx context.Context, session *store.Session) ([]*corev1.ConfigMap, error) {
		found, err := observe.ReadClientConfig(ctx, session, librarygo.KubeScheduler, namespace)
		if err != nil {
			return nil, err
		}
		return configMapsFor(s, found)
	})
}

// configuration returns kube-scheduler's configuration (U-REN-20).
func configuration(observed map[string]any, profile inputs.Profile) (map[string]any, error) {
	if _, has := observed["profiles"]; !has {
		return nil, fmt.Errorf("profiles: %w", observe.ErrNotObserved)
	}
	config := map[string]any{
		"apiVersion":                "kubescheduler.config.k8s.io/v1",
		"kind":                      "KubeSchedulerConfiguration",
		"clientConnection":          map[string]any{"kubeconfig": kubeconfig},
		"leaderElection":            map[string]any{"leaderElect": true, "resourceLock": "leases"},
		"enableProfiling":           false,
		"enableContentionProfiling": false,
	}
	// In profile kubernetes the lease is in kube-system, which exists before the manifests are created.
	if profile == inputs.OpenShift {
		config = observe.Merge(config, observe.Nested(namespace, "leaderElection", "resourceNamespace"))
	}
	return observe.Merge(config, observe.Select(observed, "profiles")), nil
}

func configMapsFor(s *inputs.Settings, found observe.ClientConfig) ([]*corev1.ConfigMap, error) {
	config, err := configuration(found.Observed, s.Profile)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/config: %w", namespace, err)
	}
	server, err := podtemplate.Server(found.Infrastructure, s.Profile)
	if err != nil {
		return nil, err
	}
	pod, err := podFor(s, found)
	if err != nil {
		return nil, err
	}
	const client = podtemplate.CertDir + "/secrets/" + clientCertificate + "/tls"
	var list []*corev1.ConfigMap
	var errs []error
	add := func(c *corev1.ConfigMap, err error) { list, errs = append(list, c), append(errs, err) }
	add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "config"},
		Data:       map[string]string{"config.yaml": string(text)},
	}, nil)
	add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "serviceaccount-ca",
			Annotations: map[string]string{annotations.OpenShiftComponent: component},
		},
		Data: map[string]string{"ca-bundle.crt": found.ServiceAccountCA},
	}, nil)
	add(podtemplate.Kubeconfig{
		Cluster: "lb-int", User: component, Server: server,
		CA:   podtemplate.ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt",
		Cert: client + ".crt", Key: client + ".key",
	}.ConfigMap(namespace, "scheduler-kubeconfig"))
	add(podtemplate.ConfigMap(namespace, "kube-scheduler-pod", pod, s.Version))
	if s.Profile == inputs.OpenShift {
		add(podtemplate.LoopbackKubeconfig(component).ConfigMap(namespace, "kube-scheduler-cert-syncer-kubeconfig"))
	}
	return list, errors.Join(errs...)
}
