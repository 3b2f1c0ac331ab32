// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
)

func others(t *testing.T) []runtime.Object {
	ca := func(name string) map[string]string { return map[string]string{"ca-bundle.crt": fixture.CA(t, name)} }
	return []runtime.Object{
		fixture.ConfigMap(managedNamespace, "kube-apiserver-server-ca", ca("server")),
		fixture.ConfigMap(managedNamespace, "kube-apiserver-client-ca", ca("client")),
		fixture.ConfigMap(managedNamespace, "kube-apiserver-aggregator-client-ca", ca("aggregator")),
		fixture.Secret(managedNamespace, "kube-controller-manager-client-cert-key", map[string][]byte{"tls.crt": {1}, "tls.key": {2}}),
	}
}

func plan(s *inputs.Settings) []loop.Step { return append([]loop.Step{Certificates(s)}, Steps(s)...) }

func TestSteps(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		t.Run(string(profile), func(t *testing.T) {
			s := fixture.Settings(profile, "192.168.2.1")
			st := fixture.Store(t, fixture.Objects(s, others(t)...)...)
			if _, err := fixture.Run(st, plan(s)...); err != nil {
				t.Fatal(err)
			}
			for _, golden := range []struct{ configMap, key, file string }{
				{"config-1", "config.yaml", "config.yaml"},
				{"kube-controller-manager-pod-1", "pod.yaml", "pod.yaml"},
				{"cluster-policy-controller-config-1", "config.yaml", "cluster-policy-controller-config.yaml"},
				{"controller-manager-kubeconfig-1", "kubeconfig", "kubeconfig.yaml"},
			} {
				fixture.Golden(t, string(profile)+"/"+golden.file, fixture.ConfigMapData(t, st, namespace, golden.configMap)[golden.key])
			}
			for _, r := range append(certConfigMaps, configMaps...) {
				if !r.Optional {
					fixture.ConfigMapData(t, st, namespace, r.Name)
				}
			}
			wrote, err := fixture.Run(st, plan(s)...)
			if diff := cmp.Diff([]string{}, fixture.WithoutOperatorResources(wrote), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("a second run must write nothing (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// The run fails if a loop runs before one that writes what it needs (R-REN-4).
func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	certified := fixture.ObjectsAfter(t, fixture.Objects(s, others(t)...), loop.Once(rotation(s)))
	serviceCA := fixture.ConfigMap(managedNamespace, "service-ca", map[string]string{"ca-bundle.crt": fixture.CA(t, "service")})
	for _, swap := range [][2]string{
		{"signer of certificate requests", "bundle for others"},
		{"config observation", "target config"},
		{"target config", "revision"},
		{"key of ServiceAccount tokens", "revision"},
		{"revision", "revision of the nodes"},
	} {
		t.Run(strings.Join(swap[:], " and "), func(t *testing.T) {
			st := fixture.Store(t, certified...)
			swapped := fixture.SwapLoops(t, plan(s), component+": "+swap[0], component+": "+swap[1])
			if _, err := fixture.Run(st, swapped...); err == nil {
				t.Fatal("the run must fail")
			} else if !errors.Is(err, loop.ErrOrder) && !errors.Is(err, loop.ErrFailed) {
				t.Fatalf("the error must name the order: %v", err)
			}
		})
	}
	t.Run("certificates and signer of certificate requests", func(t *testing.T) {
		swapped := fixture.SwapLoops(t, plan(s), component+": certificates", component+": signer of certificate requests")
		if _, err := fixture.Run(fixture.Store(t, fixture.Objects(s, others(t)...)...), swapped...); !errors.Is(err, loop.ErrOrder) {
			t.Fatalf("the signer reads what the certificates write: %v", err)
		}
	})
	t.Run("the cycle only once", func(t *testing.T) {
		st := fixture.Store(t, append(slices.Clone(certified), serviceCA)...)
		const name = component + ": revision"
		if _, err := fixture.Run(st, fixture.SwapLoops(t, plan(s), name, name)...); !errors.Is(err, loop.ErrOrder) {
			t.Fatalf("observation reads what resource sync writes: %v", err)
		}
	})
	t.Run("the cycle", func(t *testing.T) {
		st := fixture.Store(t, append(slices.Clone(certified), serviceCA)...)
		if _, err := fixture.Run(st, plan(s)...); err != nil {
			t.Fatal(err)
		}
		if config := fixture.ConfigMapData(t, st, namespace, "config-1")["config.yaml"]; !strings.Contains(config, "certFile: /etc/kubernetes/static-pod-resources/configmaps/service-ca/ca-bundle.crt") {
			t.Errorf("the first revision must have the service CA:\n%s", config)
		}
	})
}

func TestServingCertificate(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	serving := fixture.Secret(namespace, "serving-cert", map[string][]byte{corev1.TLSCertKey: {1}, corev1.TLSPrivateKeyKey: {2}})
	st := fixture.Store(t, fixture.Objects(s, append(others(t), serving)...)...)
	if _, err := fixture.Run(st, plan(s)...); err != nil {
		t.Fatal(err)
	}
	const flag = "--tls-cert-file=/etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.crt"
	if pod := fixture.ConfigMapData(t, st, namespace, "kube-controller-manager-pod")["pod.yaml"]; !strings.Contains(pod, flag) {
		t.Errorf("the pod must have %s:\n%s", flag, pod)
	}
	const file = "certFile: /etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.crt"
	if config := fixture.ConfigMapData(t, st, namespace, "cluster-policy-controller-config")["config.yaml"]; !strings.Contains(config, file) {
		t.Errorf("cluster-policy-controller must have %s:\n%s", file, config)
	}
}
