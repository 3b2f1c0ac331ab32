// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFromKubeconfig(t *testing.T) {
	const whole = `
current-context: a
contexts: [{name: b, context: {cluster: none, user: none}}, {name: a, context: {cluster: c, user: u, namespace: n}}]
clusters: [{name: c, cluster: {server: "https://example.com", certificate-authority-data: Y2E=}}]
users: [{name: u, user: {token: t}}]
`
	for name, test := range map[string]struct {
		old, new string
		want     Config
		err      error
	}{
		"token":       {"", "", Config{Server: "https://example.com", CA: []byte("ca"), Token: "t", Namespace: "n"}, nil},
		"certificate": {"token: t", "client-certificate-data: Yw==, client-key-data: aw==", Config{Server: "https://example.com", CA: []byte("ca"), Certificate: []byte("c"), Key: []byte("k"), Namespace: "n"}, nil},
		"files": {
			"token: t", "tokenFile: /token, client-certificate: c.crt, client-key: c.key",
			Config{Server: "https://example.com", CA: []byte("ca"), TokenFile: "/token", Certificate: []byte("file"), Key: []byte("key"), Namespace: "n"}, nil,
		},
		"exec":       {"token: t", "exec: {command: login}", Config{}, errExec},
		"no context": {"current-context: a", "current-context: z", Config{}, errNoContext},
		"no cluster": {"name: c,", "name: d,", Config{}, errNoContext},
		"no YAML":    {"contexts: [", "contexts: ", Config{}, ErrConfig},
		"no base64":  {"Y2E=", "!", Config{}, ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "c.crt", "file")
			write(t, folder, "c.key", "key")
			got, err := FromKubeconfig(write(t, folder, "kubeconfig", strings.Replace(whole, test.old, test.new, 1)))
			if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := InCluster(); !errors.Is(err, ErrConfig) {
		t.Errorf("outside of a pod: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	folder := t.TempDir()
	if _, err := inCluster(folder); !errors.Is(err, ErrConfig) {
		t.Errorf("without files: %v", err)
	}
	write(t, folder, "ca.crt", "ca")
	write(t, folder, "namespace", "example")
	got, err := inCluster(folder)
	want := Config{Server: "https://[fd00::1]:443", CA: []byte("ca"), TokenFile: filepath.Join(folder, "token"), Namespace: "example"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// The kubelet replaces the token of a pod before it expires.
func TestTokenIsReadAgain(t *testing.T) {
	var got []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("{}"))
	})
	folder := t.TempDir()
	changed, err := New(Config{TokenFile: filepath.Join(folder, "token")}, "agent")
	if err != nil {
		t.Fatal(err)
	}
	client.token = changed.token
	if err := client.Get(t.Context(), lease, nil); err == nil {
		t.Error("a missing token is no error")
	}
	for _, token := range []string{"one\n", "two"} {
		write(t, folder, "token", token)
		if err := client.Get(t.Context(), lease, nil); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"Bearer one", "Bearer two"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRequests(t *testing.T) {
	var got []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get("Content-Type"))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusConflict)
	})
	ctx := t.Context()
	_, applied := client.Apply(ctx, lease, "me", map[string]any{})
	for name, err := range map[string]error{"apply": applied, "create": client.Create(ctx, lease, lease, nil), "update": client.Update(ctx, lease, lease, nil)} {
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "leases.coordination.k8s.io example/lease") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := client.Delete(ctx, lease, "uid"); err != nil {
		t.Errorf("deleting what does not exist: %v", err)
	}
	want := map[string]bool{
		"PATCH /apis/coordination.k8s.io/v1/namespaces/example/leases/lease?fieldManager=me&force=true application/apply-patch+yaml": true,
		"POST /apis/coordination.k8s.io/v1/namespaces/example/leases? application/json":                                              true,
		"PUT /apis/coordination.k8s.io/v1/namespaces/example/leases/lease? application/json":                                         true,
		"DELETE /apis/coordination.k8s.io/v1/namespaces/example/leases/lease? application/json":                                      true,
	}
	for _, request := range got {
		if !want[request] {
			t.Errorf("request %s", request)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d requests", len(got))
	}
}
