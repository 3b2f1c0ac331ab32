// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

func TestResourceSync(t *testing.T) {
	from := func(name string) store.Object { return store.Object{Namespace: "source", Name: name} }
	source := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "source", Name: name}, Data: data}
	}
	s := newStore(t,
		source("a", map[string]string{"k": "v", "l": "w"}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "source", Name: "s"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}},
		configMap("stale", map[string]string{"k": "v"}), secret("stale", map[string][]byte{"k": []byte("v")}),
	)
	step := loop.Once(librarygo.ResourceSync("copies", operator,
		librarygo.SyncRule{To: in("all"), From: from("a")},
		librarygo.SyncRule{To: in("part"), From: from("a"), Keys: []string{"l", "missing"}},
		librarygo.SyncRule{To: in("stale"), From: from("missing")},
		librarygo.SyncRule{To: in("none"), From: from("missing")},
		librarygo.SyncRule{Secret: true, To: in("secret"), From: from("s")},
		librarygo.SyncRule{Secret: true, To: in("stale"), From: from("missing")},
	))
	must(t, s, step)
	gotMaps, gotSecrets := map[string]map[string]string{}, map[string]map[string][]byte{}
	for name, found := range configMaps(t, s, namespace) {
		gotMaps[name] = found.Data
	}
	for name, found := range secrets(t, s, namespace) {
		gotSecrets[name] = found.Data
		if name == "secret" && found.Type != corev1.SecretTypeTLS {
			t.Errorf("the copy is of type %s", found.Type)
		}
	}
	if diff := cmp.Diff(map[string]map[string]string{"all": {"k": "v", "l": "w"}, "part": {"l": "w"}}, gotMaps); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]map[string][]byte{"secret": {"tls.crt": []byte("c"), "tls.key": []byte("k")}}, gotSecrets); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if must(t, s, step) {
		t.Error("a second run wrote something")
	}

	s = newStore(t, source("a", map[string]string{"k": "x"}), configMap("all", map[string]string{"k": "v"}))
	must(t, s, loop.Once(librarygo.ResourceSync("copies", operator, librarygo.SyncRule{To: in("all"), From: from("a")})))
	if got := configMaps(t, s, namespace)["all"].Data["k"]; got != "x" {
		t.Errorf("the copy has %q", got)
	}
}

// A failure that the controller reports as a condition is an error.
func TestResourceSyncErrors(t *testing.T) {
	s := newStore(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "source", Name: "token"}, Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"k": []byte("v")}})
	err := run(t, s, loop.Once(librarygo.ResourceSync("copies", operator, librarygo.SyncRule{Secret: true, To: in("token"), From: store.Object{Namespace: "source", Name: "token"}})))
	if !errors.Is(err, librarygo.ErrNotCopied) {
		t.Errorf("got %v, want %v", err, librarygo.ErrNotCopied)
	}
	fails(t, err, `"copies"`, "token")
}
