// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

func settings(profile inputs.Profile) *inputs.Settings {
	s := fixture.Settings(profile, "192.168.126.10")
	for _, name := range []string{"kube-apiserver", "hyperkube", "cluster-kube-apiserver-operator"} {
		s.Images[name] = "registry.example.test/" + name + ":1"
	}
	return s
}

func others(t *testing.T) []runtime.Object {
	t.Helper()
	key := map[string]string{"service-account-001.pub": "public key"}
	return []runtime.Object{
		fixture.ConfigMap(etcdNamespace, "etcd-endpoints", map[string]string{"MTkyLjE2OC4xMjYuMTA": "192.168.126.10"}),
		fixture.ConfigMap(configNamespace, "etcd-serving-ca", map[string]string{bundleKey: fixture.CA(t, "etcd-signer")}),
		fixture.Secret(configNamespace, "etcd-client", map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}),
		fixture.ConfigMap(managedNamespace, "csr-controller-ca", map[string]string{bundleKey: fixture.CA(t, "csr-signer")}),
		fixture.ConfigMap(managedNamespace, "sa-token-signing-certs", key),
	}
}

// keys returns the keys of the first and third step, once for all tests, because RSA keys are slow.
var keys = sync.OnceValues(func() ([]runtime.Object, error) {
	s, err := store.New()
	if err != nil {
		return nil, err
	}
	steps := Steps(settings(inputs.OpenShift))
	if _, err := fixture.Run(s, steps[0], steps[2]); err != nil {
		return nil, err
	}
	return s.Objects()
})

// objects returns the input of a run with existing keys.
func objects(t *testing.T, s *inputs.Settings, extra ...runtime.Object) []runtime.Object {
	t.Helper()
	made, err := keys()
	if err != nil {
		t.Fatal(err)
	}
	all := append(fixture.Objects(s, others(t)...), extra...)
	for _, object := range made {
		all = append(all, object.DeepCopyObject())
	}
	return all
}

func run(t *testing.T, s *inputs.Settings, extra ...runtime.Object) *store.Store {
	t.Helper()
	st := fixture.Store(t, objects(t, s, extra...)...)
	if _, err := fixture.Run(st, Steps(s)...); err != nil {
		t.Fatal(err)
	}
	return st
}

// defaults caches one run of each profile for tests that only read it.
var defaults = map[inputs.Profile]*store.Store{}

// runDefault returns the store after a run with default settings. Callers must not change it.
func runDefault(t *testing.T, profile inputs.Profile) *store.Store {
	t.Helper()
	if defaults[profile] == nil {
		defaults[profile] = run(t, settings(profile))
	}
	return defaults[profile]
}

// observed returns what each observer returns, with all that loops have written before.
func observed(t *testing.T, s *inputs.Settings) []map[string]any {
	t.Helper()
	all := fixture.Objects(s, append(others(t), fixture.Secret(Namespace, "encryption-config", map[string][]byte{"encryption-config": {1}}))...)
	for _, object := range all {
		if operator, is := object.(*operatorv1.KubeAPIServer); is {
			operator.Spec.EventTTLMinutes = 60
		}
	}
	session := fixture.Session(fixture.Store(t, all...))
	var parts []map[string]any
	for _, observe := range observersFor(s) {
		part, err := observe(t.Context(), session, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	return parts
}

func inventory(t *testing.T, s *store.Store) string {
	t.Helper()
	all, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, object := range all {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		metadata := object.(metav1.Object)
		text.WriteString(object.GetObjectKind().GroupVersionKind().Kind + " " + metadata.GetNamespace() + "/" + metadata.GetName())
		for _, field := range []string{"data", "rules", "subjects"} {
			if data, is := m[field].(map[string]any); is {
				for _, key := range slices.Sorted(maps.Keys(data)) {
					text.WriteString(" " + key)
				}
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}
