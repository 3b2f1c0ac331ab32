// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

//go:embed resources
var resources embed.FS

// Steps returns the loops in order. kube-apiserver's loops and kube-controller-manager's certificates run before them.
func Steps(s *inputs.Settings) []loop.Step {
	var steps []loop.Step
	if s.Profile == inputs.OpenShift {
		steps = append(steps, loop.Once(librarygo.CertRotation(component+": certificates",
			kubecontrollermanager.RecoveryCertificate(s, namespace))))
	}
	return append(steps, librarygo.StaticPod{
		Operator: librarygo.KubeScheduler, Pod: StaticPod(s), Nodes: s.NodeNames(), Resources: resources, Wanted: s.Profile.Includes,
		Observers: observers(s),
		Desired: func(ctx context.Context, session *store.Session) ([]runtime.Object, error) {
			return desired(ctx, s, session)
		},
		Writes: store.ConfigMaps(namespace, "config", "serviceaccount-ca", "scheduler-kubeconfig", "kube-scheduler-cert-syncer-kubeconfig",
			"kube-scheduler-pod"),
		Copies: []librarygo.SyncRule{{
			Secret: true,
			To:     store.Object{Namespace: namespace, Name: clientCertificate},
			From:   store.Object{Namespace: managedNamespace, Name: clientCertificate},
		}},
	}.Steps()...)
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

// desired returns the operator's own objects of a revision.
func desired(ctx context.Context, s *inputs.Settings, session *store.Session) ([]runtime.Object, error) {
	found, err := observe.ReadClientConfig(ctx, session, librarygo.KubeScheduler, namespace)
	if err != nil {
		return nil, err
	}
	content, err := configuration(found.Observed, s.Profile)
	if err != nil {
		return nil, err
	}
	config, err := podtemplate.YAML(namespace, "config", "config.yaml", content)
	if err != nil {
		return nil, err
	}
	template, err := podFor(s, found)
	if err != nil {
		return nil, err
	}
	pod, err := podtemplate.ConfigMap(namespace, "kube-scheduler-pod", template, s.Version)
	if err != nil {
		return nil, err
	}
	all := []runtime.Object{config, pod}
	client, err := found.ConfigMaps(s, namespace, component, "scheduler-kubeconfig", "kube-scheduler-cert-syncer-kubeconfig")
	for _, c := range client {
		all = append(all, c)
	}
	return all, err
}

// StaticPod returns the static pod of kube-scheduler and what its files are made of (U-REN-18). The sidecars have no
// token.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "kube-scheduler-pod", Namespace: namespace,
		ConfigMaps: []staticpods.Resource{
			{Name: "kube-scheduler-pod"},
			{Name: "config"},
			{Name: "serviceaccount-ca"},
			{Name: "policy-configmap", Optional: true},
			{Name: "scheduler-kubeconfig"},
			{Name: "kube-scheduler-cert-syncer-kubeconfig", Optional: true},
		},
		Secrets: []staticpods.Resource{{Name: "serving-cert", Optional: true}},
		CertDir: "kube-scheduler-certs", CertSecrets: []staticpods.Resource{{Name: clientCertificate}, {Name: podtemplate.RecoveryCertificate, Optional: true}},
	}
}
