// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
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
			if _, err := fixture.Run(st, Steps(s)...); err != nil {
				t.Fatal(err)
			}
			for _, golden := range []struct{ configMap, key, file string }{
				{"config-1", "config.yaml", "config.yaml"},
				{"kube-scheduler-pod-1", "pod.yaml", "pod.yaml"},
				{"scheduler-kubeconfig-1", "kubeconfig", "kubeconfig.yaml"},
			} {
				fixture.Golden(t, string(profile)+"/"+golden.file, fixture.ConfigMapData(t, st, namespace, golden.configMap)[golden.key])
			}
			wrote, err := fixture.Run(st, Steps(s)...)
			if diff := cmp.Diff([]string{}, fixture.WithoutOperatorResources(wrote), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("a second run must write nothing (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// The run fails if a loop runs before one that writes what it needs (R-REN-4).
func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	for _, swap := range [][2]string{
		{"config observation", "target config"},
		{"target config", "revision"},
		{"revision", "revision of the nodes"},
	} {
		t.Run(strings.Join(swap[:], " and "), func(t *testing.T) {
			st := fixture.Store(t, fixture.Objects(s, others(t)...)...)
			swapped := fixture.SwapLoops(t, Steps(s), component+": "+swap[0], component+": "+swap[1])
			if _, err := fixture.Run(st, swapped...); err == nil || !strings.Contains(err.Error(), component+": "+swap[0]) && !strings.Contains(err.Error(), component+": "+swap[1]) {
				t.Fatalf("the error must name one of the two: %v", err)
			}
		})
	}
}

func TestServingCertificate(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, "192.168.2.1")
	serving := fixture.Secret(namespace, "serving-cert", map[string][]byte{corev1.TLSCertKey: {1}, corev1.TLSPrivateKeyKey: {2}})
	st := fixture.Store(t, fixture.Objects(s, append(others(t), serving)...)...)
	if _, err := fixture.Run(st, Steps(s)...); err != nil {
		t.Fatal(err)
	}
	const flag = "--tls-cert-file=/etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.crt"
	if pod := fixture.ConfigMapData(t, st, namespace, "kube-scheduler-pod")["pod.yaml"]; !strings.Contains(pod, flag) {
		t.Errorf("the pod must have %s:\n%s", flag, pod)
	}
}
