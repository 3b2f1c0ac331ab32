// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
			fixture.CheckSteps(t, st, plan(s), profile, namespace,
				fixture.File{ConfigMap: "config-1", Key: "config.yaml", Golden: "config.yaml"},
				fixture.File{ConfigMap: "kube-controller-manager-pod-1", Key: "pod.yaml", Golden: "pod.yaml"},
				fixture.File{ConfigMap: "cluster-policy-controller-config-1", Key: "config.yaml", Golden: "cluster-policy-controller-config.yaml"},
				fixture.File{ConfigMap: "controller-manager-kubeconfig-1", Key: "kubeconfig", Golden: "kubeconfig.yaml"})
		})
	}
}

func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	fixture.CheckOrder(t, fixture.Objects(s, others(t)...), plan(s), component, [2]string{"certificates", "signer of certificate requests"})
	certified := fixture.ObjectsAfter(t, fixture.Objects(s, others(t)...), loop.Once(rotation(s)))
	fixture.CheckOrder(t, certified, plan(s), component, [2]string{"signer of certificate requests", "bundle for others"},
		[2]string{"config observation", "target config"}, [2]string{"target config", "revision"},
		[2]string{"key of ServiceAccount tokens", "revision"}, [2]string{"revision", "revision of the nodes"})
	serviceCA := fixture.ConfigMap(managedNamespace, "service-ca", map[string]string{"ca-bundle.crt": fixture.CA(t, "service")})
	t.Run("the cycle only once", func(t *testing.T) {
		st := fixture.Store(t, append(slices.Clone(certified), serviceCA)...)
		if _, err := fixture.Run(st, fixture.Flat(plan(s))...); !errors.Is(err, loop.ErrOrder) {
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
	st := fixture.CheckServing(t, fixture.Objects(s, others(t)...), plan(s), namespace, "kube-controller-manager-pod")
	const file = "certFile: /etc/kubernetes/static-pod-resources/secrets/serving-cert/tls.crt"
	if config := fixture.ConfigMapData(t, st, namespace, "cluster-policy-controller-config")["config.yaml"]; !strings.Contains(config, file) {
		t.Errorf("cluster-policy-controller must have %s:\n%s", file, config)
	}
}
