// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

var operator = librarygo.KubeAPIServer

func newStore(t *testing.T, objects ...runtime.Object) *store.Store {
	t.Helper()
	s, err := store.New(append(objects, operator.Resource())...)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
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
	session := sessionOf(s)
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.ConfigMap:
			err = librarygo.ApplyConfigMap(context.Background(), session, object)
		case *corev1.Secret:
			err = librarygo.ApplySecret(context.Background(), session, object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wait(d time.Duration) { <-time.After(d) }
