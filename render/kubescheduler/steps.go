// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"embed"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
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
