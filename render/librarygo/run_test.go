// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

var operator = librarygo.KubeAPIServer

const namespace = "openshift-kube-apiserver"

func apiServer(encryption configv1.EncryptionType) runtime.Object {
	return &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: configv1.APIServerSpec{Encryption: configv1.APIServerEncryption{Type: encryption}}}
}

func newStore(t *testing.T, objects ...runtime.Object) *store.Store {
	t.Helper()
	return fixture.Store(t, append(objects, operator.Resource())...)
}

func run(t *testing.T, s *store.Store, steps ...loop.Step) error {
	t.Helper()
	return loop.Run(t.Context(), s, steps, loop.Options{Timeout: time.Minute})
}

// must runs the steps and reports whether they have written anything.
func must(t *testing.T, s *store.Store, steps ...loop.Step) (wrote bool) {
	t.Helper()
	before := s.Version()
	if err := run(t, s, steps...); err != nil {
		t.Fatal(err)
	}
	return s.Version() != before
}

func fails(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func sessionOf(s *store.Store) *store.Session {
	return s.Session("test", store.Pattern{Resource: "configmaps", Namespace: "*", Name: "*"}, store.Pattern{Resource: "secrets", Namespace: "*", Name: "*"}, operator.Pattern())
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return fixture.ConfigMap(namespace, name, data)
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return fixture.Secret(namespace, name, data)
}

func configMaps(t *testing.T, s *store.Store, namespace string) map[string]*corev1.ConfigMap {
	t.Helper()
	return byName[*corev1.ConfigMap](t, s, namespace)
}

func secrets(t *testing.T, s *store.Store, namespace string) map[string]*corev1.Secret {
	t.Helper()
	return byName[*corev1.Secret](t, s, namespace)
}

func byName[T metav1.Object](t *testing.T, s *store.Store, namespace string) map[string]T {
	t.Helper()
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]T{}
	for _, object := range objects {
		if typed, is := object.(T); is && typed.GetNamespace() == namespace {
			found[typed.GetName()] = typed
		}
	}
	return found
}

func write(t *testing.T, s *store.Store, objects ...runtime.Object) {
	t.Helper()
	if err := librarygo.Apply(t.Context(), sessionOf(s), objects...); err != nil {
		t.Fatal(err)
	}
}

func wait(d time.Duration) { <-time.After(d) }
