// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/store"
)

var newStore = fixture.Store

func errorOf[T any](_ T, err error) error { return err }

func create(t *testing.T, s *store.Session, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	created, err := s.Kube().CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(namespace, name, nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestPattern(t *testing.T) {
	secret := func(namespace, name string) store.Pattern {
		return store.Pattern{Resource: "secrets", Namespace: namespace, Name: name}
	}
	for _, test := range []struct {
		pattern, object store.Pattern
		want            bool
	}{
		{secret("ns", "a"), secret("ns", "a"), true},
		{secret("ns", "a"), secret("ns", "ab"), false},
		{secret("ns", "ab"), secret("ns", "a"), false},
		{secret("ns", "a"), secret("other", "a"), false},
		{secret("ns", "a-*"), secret("ns", "a-1"), true},
		{secret("ns", "a-*"), secret("ns", "a-"), true},
		{secret("ns", "a-*"), secret("ns", "a"), false},
		{secret("ns", "*"), secret("ns", "a"), true},
		{secret("ns", "*a"), secret("ns", "ba"), false},
		{secret("n*", "a"), secret("ns", "a"), true},
		{secret("*", "a"), secret("", "a"), true},
		{secret("", "a"), secret("ns", "a"), false},
		{secret("ns", ""), secret("ns", "a"), false},
		{store.Pattern{Resource: "configmaps", Namespace: "ns", Name: "a"}, secret("ns", "a"), false},
		{store.Pattern{Group: "other", Resource: "secrets", Namespace: "ns", Name: "a"}, secret("ns", "a"), false},
	} {
		if got := test.pattern.Selects(test.object); got != test.want {
			t.Errorf("%s selects %s: %t, want %t", test.pattern, test.object, got, test.want)
		}
	}
	want := []store.Pattern{{Group: "g", Resource: "r", Namespace: "ns", Name: "a"}, {Group: "g", Resource: "r", Namespace: "ns", Name: "b"}}
	if diff := cmp.Diff(want, store.Patterns("g", "r", "ns", "a", "b")); diff != "" {
		t.Errorf("patterns (-want +got):\n%s", diff)
	}
	if got, want := slices.Concat(store.Secrets("ns", "a"), store.ConfigMaps("ns", "a"))[1].String(), "configmaps ns/a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Undeclared writes are refused for all verbs, and reported even if the loop hides the error.
func TestUndeclaredWrite(t *testing.T) {
	for verb, send := range map[string]func(client corev1client.ConfigMapInterface) error{
		"create": func(c corev1client.ConfigMapInterface) error {
			return errorOf(c.Create(t.Context(), configMap("ns", "b", nil), metav1.CreateOptions{}))
		},
		"update": func(c corev1client.ConfigMapInterface) error {
			return errorOf(c.Update(t.Context(), configMap("ns", "a", map[string]string{"k": "v"}), metav1.UpdateOptions{}))
		},
		"patch": func(c corev1client.ConfigMapInterface) error {
			return errorOf(c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"k":"v"}}`), metav1.PatchOptions{}))
		},
		"delete": func(c corev1client.ConfigMapInterface) error {
			return c.Delete(t.Context(), "a", metav1.DeleteOptions{})
		},
	} {
		t.Run(verb, func(t *testing.T) {
			s := newStore(t, configMap("ns", "a", nil))
			before := s.Version()
			session := s.Session("loop", store.ConfigMaps("ns", "declared")...)
			if err := send(session.Kube().CoreV1().ConfigMaps("ns")); !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want Forbidden", err)
			}
			if err := session.Err(); !errors.Is(err, store.ErrUndeclared) || !strings.HasPrefix(err.Error(), verb+" configmaps ns/") || !strings.Contains(err.Error(), `"loop"`) {
				t.Errorf("the session's error is %v", err)
			}
			if wrote := session.Wrote(); len(wrote) > 0 || s.Version() != before {
				t.Errorf("it wrote %v, and the store's version went from %d to %d", wrote, before, s.Version())
			}
		})
	}
}

func TestEnd(t *testing.T) {
	s := newStore(t, configMap("ns", "a", nil))
	session := s.Session("loop", store.ConfigMaps("ns", "*")...)
	c := session.Kube().CoreV1().ConfigMaps("ns")
	session.Close()
	_, getErr := c.Get(t.Context(), "a", metav1.GetOptions{})
	_, listErr := c.List(t.Context(), metav1.ListOptions{})
	_, createErr := c.Create(t.Context(), configMap("ns", "b", nil), metav1.CreateOptions{})
	for _, err := range []error{getErr, listErr, createErr} {
		if !errors.Is(err, store.ErrClosed) || !strings.Contains(err.Error(), `"loop"`) {
			t.Errorf("got %v, want %v", err, store.ErrClosed)
		}
	}
	if objects, err := s.Objects(); err != nil || len(objects) != 1 {
		t.Errorf("the store holds %d objects, %v", len(objects), err)
	}
}

func TestUnsupported(t *testing.T) {
	s := newStore(t, configMap("ns", "a", nil), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	kube := s.Session("loop", store.Pattern{Resource: "configmaps", Namespace: "*", Name: "*"}, store.Pattern{Resource: "serviceaccounts", Namespace: "*", Name: "*"},
		store.Pattern{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "*"}).Kube()
	before := s.Version()
	ctx, configMaps, roles := t.Context(), kube.CoreV1().ConfigMaps("ns"), kube.RbacV1beta1().ClusterRoles()
	role := []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1beta1","kind":"ClusterRole","metadata":{"name":"a"}}`)
	for name, err := range map[string]error{
		"watch":                     errorOf(configMaps.Watch(ctx, metav1.ListOptions{})),
		"list by field":             errorOf(configMaps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})),
		"delete a collection":       configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"create a token":            errorOf(kube.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "a", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})),
		"patch another subresource": errorOf(configMaps.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "scale")),
		"get in another version":    errorOf(roles.Get(ctx, "a", metav1.GetOptions{})),
		"list in another version":   errorOf(roles.List(ctx, metav1.ListOptions{})),
		"patch in another version":  errorOf(roles.Patch(ctx, "a", types.ApplyPatchType, role, metav1.PatchOptions{FieldManager: "one"})),
	} {
		if !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrUnsupported)
		}
	}
	if s.Version() != before {
		t.Errorf("the store's version went from %d to %d", before, s.Version())
	}
}

// A session records what its loop has read and written since Reset, and later changes by others.
func TestSessionRemembers(t *testing.T) {
	s := newStore(t, configMap("ns", "a", nil), configMap("ns", "b", nil), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	reader := s.Session("reader", store.ConfigMaps("ns", "own")...)
	if !reader.Idle() {
		t.Error("a new session is not idle")
	}
	c := reader.Kube().CoreV1()
	read := func() {
		for _, name := range []string{"b", "a", "missing"} {
			if _, err := c.ConfigMaps("ns").Get(t.Context(), name, metav1.GetOptions{}); err != nil && name != "missing" {
				t.Fatal(err)
			}
		}
		if _, err := c.Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if reader.Idle() {
		t.Error("a session that has read is idle")
	}
	if diff := cmp.Diff(store.ConfigMaps("ns", "missing"), reader.NotFound()); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
	if found := reader.StaleReads(); len(found) > 0 {
		t.Errorf("nothing has changed, but outdated is %v", found)
	}
	create(t, reader, "ns", "own")

	writer := s.Session("writer", store.Pattern{Resource: "configmaps", Namespace: "*", Name: "*"}, store.Pattern{Resource: "namespaces", Name: "*"})
	w := writer.Kube().CoreV1()
	if _, err := w.ConfigMaps("ns").Update(t.Context(), configMap("ns", "a", map[string]string{"k": "v"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.ConfigMaps("ns").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.ConfigMaps("ns").Delete(t.Context(), "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, writer, "ns", "missing")
	create(t, writer, "ns", "unread")
	for _, name := range []string{"ns", "ns2"} {
		if _, err := w.Namespaces().Patch(t.Context(), name, types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`","labels":{"l":"1"}}}`), metav1.PatchOptions{FieldManager: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"configmaps ns/a", "configmaps ns/b", "configmaps ns/own", "configmaps ns/missing", "configmaps ns/unread", "namespaces ns", "namespaces ns2"}, writer.Wrote()); diff != "" {
		t.Errorf("the writer wrote (-want +got):\n%s", diff)
	}

	want := []store.StaleRead{
		{Object: "configmaps ns/a", Writer: "writer"},
		{Object: "configmaps ns/b", Writer: "writer"},
		{Object: "configmaps ns/missing", Writer: "writer", Missing: true},
		{Object: "configmaps ns/own", Writer: "writer"},
		{Object: "namespaces ns", Writer: "writer"},
		{Object: "namespaces ns2", Writer: "writer", Missing: true},
	}
	if diff := cmp.Diff(want, reader.StaleReads()); diff != "" {
		t.Errorf("outdated (-want +got):\n%s", diff)
	}
	but := slices.Concat(store.ConfigMaps("ns", "a", "missing"), store.Patterns("", "namespaces", "", "*"))
	if diff := cmp.Diff([]store.StaleRead{want[1], want[3]}, reader.StaleReads(but...)); diff != "" {
		t.Errorf("outdated but for what is expected (-want +got):\n%s", diff)
	}
	if got := want[0].String() + "; " + want[2].String(); got != `it read configmaps ns/a, which "writer" has changed since; it did not find configmaps ns/missing, which "writer" has written since` {
		t.Errorf("got %s", got)
	}

	reader.Reset()
	if found := reader.StaleReads(); len(found) > 0 || len(reader.Wrote()) > 0 || len(reader.NotFound()) > 0 || !reader.Idle() {
		t.Errorf("after Forget outdated is %v, wrote %v, missed %v", found, reader.Wrote(), reader.NotFound())
	}
	create(t, writer, "ns", "b")
	read()
	if found := reader.StaleReads(); len(found) > 0 {
		t.Errorf("after it has read again outdated is %v", found)
	}
}

// Names of RBAC objects may contain slashes.
func TestListOfUnusualNames(t *testing.T) {
	s := newStore(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a@1 b:c"}})
	reader := s.Session("reader")
	if _, err := reader.Kube().RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if found := reader.StaleReads(); len(found) > 0 {
		t.Errorf("nothing has changed, but outdated is %v", found)
	}
}
