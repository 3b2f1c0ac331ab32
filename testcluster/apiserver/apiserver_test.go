// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/crds"
)

var every = []string{crds.Infrastructures, crds.Ingresses, "schedulers.config.openshift.io", crds.ClusterOperators, crds.IngressControllers}

var shared = NewShared(Options{CRDs: every, Flags: map[string]string{"max-requests-inflight": "123"}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestShared(t *testing.T) {
	server := shared.Server(t)
	for _, name := range every {
		plural, group, _ := strings.Cut(name, ".")
		if _, err := server.Admin(t).RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: plural}); err != nil {
			t.Error(err)
		}
	}
	NoError(t, server.Admin(t).List(t.Context(), &configv1.InfrastructureList{}))
	if one, two := server.Namespace(t), server.Namespace(t); shared.Server(t) != server || one == two {
		t.Error("tests must share a server, and no namespace")
	}
	answer, err := http.Get(server.EtcdURL() + "/version")
	NoError(t, err)
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "etcdserver") {
		t.Errorf("the etcd answers %s, %v", text, err)
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

type failures struct {
	testing.TB
	errors []string
}

func (f *failures) Helper()                           {}
func (f *failures) Errorf(format string, args ...any) { f.errors = append(f.errors, format) }

func TestWrites(t *testing.T) {
	server := shared.Server(t)
	ctx, namespace := t.Context(), server.Namespace(t)
	writer, reader := server.Client(t, "writer", "system:masters"), server.Client(t, "reader", "system:masters")
	got := server.WritesDuring(t, "writer", func() {
		object := configMap(namespace, "a")
		NoError(t, writer.Create(ctx, object))
		if err := writer.Create(ctx, configMap(namespace, "a")); !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		before := object.DeepCopy()
		object.Data = map[string]string{"k": "v"}
		NoError(t, writer.Patch(ctx, object, client.MergeFrom(before), client.DryRunAll, client.FieldOwner("x")))
		NoError(t, writer.Update(ctx, object))
		NoError(t, writer.Get(ctx, client.ObjectKeyFromObject(object), object))
		NoError(t, reader.Create(ctx, configMap(namespace, "b")))
		NoError(t, writer.Delete(ctx, object))
	})
	var verbs []string
	for _, write := range got {
		verbs = append(verbs, write.Verb)
	}
	if want := []string{"create", "create", "patch", "update", "delete"}; !slices.Equal(verbs, want) {
		t.Fatalf("writes %v, want %v", got, want)
	}
	if !strings.Contains(got[2].URI, "dryRun=All") || !strings.Contains(got[2].URI, "/configmaps/a") {
		t.Errorf("the URI of the dry run is %q", got[2].URI)
	}
	if all := server.Writes(t, ""); len(all) <= len(got) {
		t.Errorf("%d writes of all users, want more than the writer's %d", len(all), len(got))
	}
	server.NoWrites(t, "reader", func() { NoError(t, reader.List(ctx, &corev1.ConfigMapList{})) })
	server.NoWrites(t, "test-admin", func() { server.May(t, "reader", [6]string{namespace, "", "configmaps", "", "", "get"}) })
	failed := &failures{TB: t}
	server.NoWrites(failed, "reader", func() { NoError(t, reader.Create(ctx, configMap(namespace, "c"))) })
	if n := len(server.Writes(t, "reader")); n != 2 || len(failed.errors) != 1 {
		t.Errorf("%d writes of the reader, want 2; NoWrites reports %v, want one error", n, failed.errors)
	}

	limited := server.Client(t, "limited")
	if err := limited.List(ctx, &corev1.ConfigMapList{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a grant: %v, want Forbidden", err)
	}
	server.Grant(t, "limited", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	NoError(t, limited.List(ctx, &corev1.ConfigMapList{}))
	if err := limited.Create(ctx, configMap(namespace, "d")); !apierrors.IsForbidden(err) {
		t.Errorf("what is not granted: %v, want Forbidden", err)
	}
}

func TestAuditCatchesUp(t *testing.T) {
	log := auditLog{path: filepath.Join(t.TempDir(), "audit.log")}
	for n, user := range []string{"u", "system:apiserver", "u"} {
		file, err := os.OpenFile(log.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		NoError(t, err)
		_, err = fmt.Fprintf(file, `{"stage":"RequestReceived","verb":"patch","requestURI":"/%d","user":{"username":%q}}`+"\n", n, user)
		NoError(t, errors.Join(err, file.Close()))
		writes, err := log.catchUp()
		if err != nil || len(writes) != n+1 || writes[n] != (Write{user, "patch", fmt.Sprintf("/%d", n)}) {
			t.Fatalf("after %d writes: %v, %v", n+1, writes, err)
		}
	}
	if all, own := by("", log.writes), by("system:apiserver", log.writes); len(all) != 2 || len(own) != 1 {
		t.Errorf("%v of clients and %v of the API server", all, own)
	}
}
