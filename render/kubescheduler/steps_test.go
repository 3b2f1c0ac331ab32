// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
)

func others(t *testing.T) []runtime.Object {
	return []runtime.Object{
		fixture.ConfigMap(managedNamespace, "kube-apiserver-server-ca", map[string]string{"ca-bundle.crt": fixture.CA(t, "server")}),
		fixture.Secret(managedNamespace, clientCertificate, map[string][]byte{"tls.crt": {1}, "tls.key": {2}}),
	}
}

func TestSteps(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		t.Run(string(profile), func(t *testing.T) {
			s := fixture.Settings(profile, "192.168.2.1")
			st := fixture.Store(t, fixture.Objects(s, others(t)...)...)
			fixture.CheckSteps(t, st, Steps(s), profile, namespace,
				fixture.File{ConfigMap: "config-1", Key: "config.yaml", Golden: "config.yaml"},
				fixture.File{ConfigMap: "kube-scheduler-pod-1", Key: "pod.yaml", Golden: "pod.yaml"},
				fixture.File{ConfigMap: "scheduler-kubeconfig-1", Key: "kubeconfig", Golden: "kubeconfig.yaml"})
		})
	}
}

func TestKnownFlags(t *testing.T) { fixture.CheckPodFlags(t, "kubernetes/pod.yaml") }

func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	fixture.CheckOrder(t, fixture.Objects(s, others(t)...), Steps(s), component, [2]string{"config observation", "target config"},
		[2]string{"target config", "revision"}, [2]string{"revision", "revision of the nodes"})
}

func TestServingCertificate(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, "192.168.2.1")
	fixture.CheckServing(t, fixture.Objects(s, others(t)...), Steps(s), namespace, "kube-scheduler-pod")
}
