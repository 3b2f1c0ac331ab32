// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"embed"

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
	return append(steps,
		loop.Once(librarygo.StaticResources(component+": static resources", librarygo.KubeScheduler, resources, s.Profile.Includes)),
		loop.Cycle(4,
			librarygo.ConfigObservation(component+": config observation", librarygo.KubeScheduler, observers(s)...),
			targetConfig(s),
			librarygo.ResourceSync(component+": resource sync", librarygo.KubeScheduler, librarygo.SyncRule{
				Secret: true,
				To:     store.Object{Namespace: namespace, Name: clientCertificate},
				From:   store.Object{Namespace: managedNamespace, Name: clientCertificate},
			}),
		),
		loop.Once(librarygo.Revision(component+": revision", librarygo.KubeScheduler, namespace, configMaps, secrets)),
		loop.Once(librarygo.NodeStatus(component+": revision of the nodes", librarygo.KubeScheduler, s.NodeNames()...)),
	)
}

// Objects with and without a revision (U-REN-18). The sidecars have no token.
var (
	configMaps = []staticpods.Resource{
		{Name: "kube-scheduler-pod"},
		{Name: "config"},
		{Name: "serviceaccount-ca"},
		{Name: "policy-configmap", Optional: true},
		{Name: "scheduler-kubeconfig"},
		{Name: "kube-scheduler-cert-syncer-kubeconfig", Optional: true},
	}
	secrets     = []staticpods.Resource{{Name: "serving-cert", Optional: true}}
	certSecrets = []staticpods.Resource{{Name: clientCertificate}, {Name: podtemplate.RecoveryCertificate, Optional: true}}
)

// StaticPod returns the static pod of kube-scheduler and what its files are made of.
func StaticPod(*inputs.Settings) staticpods.Pod {
	return staticpods.Pod{
		Name: "kube-scheduler-pod", Namespace: namespace,
		ConfigMaps: configMaps, Secrets: secrets,
		CertDir: "kube-scheduler-certs", CertSecrets: certSecrets,
	}
}
