// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/export"
	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
)

// withAccess returns a copy of the input of one node with the objects of the administrator's access, and his kubeconfig.
func withAccess(t *testing.T, validity time.Duration) (folder string, kubeconfig []byte) {
	t.Helper()
	input := os.DirFS("testdata/input/one-node")
	cluster, err := inputs.Read(input, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	objects, kubeconfig, err := render.AdminKubeconfig(t.Context(), cluster.Infrastructure, validity)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	if err := os.CopyFS(folder, input); err != nil {
		t.Fatal(err)
	}
	exported, err := export.Manifests(append(objects, namespaces(objects)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range export.Files(exported) {
		if err := os.WriteFile(filepath.Join(folder, "access-"+f.Path), f.Content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, kubeconfig
}

func settingsOf(t *testing.T, read func(fs.FS, time.Time) (*inputs.Cluster, error), folder string) *inputs.Settings {
	t.Helper()
	cluster, err := read(os.DirFS(folder), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.Settings(inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2", Validity: year})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A kubeconfig that was made in advance works with the control plane of its objects (R-BIP-4).
func TestAccess(t *testing.T) {
	folder, kubeconfig := withAccess(t, inputs.DefaultValidity)
	result, err := render.Run(t.Context(), settingsOf(t, inputs.Read, folder), render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://api.sno.example.com:6443" {
		t.Errorf("server %s", config.Host)
	}
	serving := byName[*corev1.Secret](t, result.Objects, "openshift-kube-apiserver", "external-loadbalancer-serving-certkey")
	fixture.Verify(t, fixture.Pool(t, config.CAData), fixture.Leaf(t, serving.Data[corev1.TLSCertKey]), "api.sno.example.com", x509.ExtKeyUsageServerAuth)
	clients := byName[*corev1.ConfigMap](t, result.Objects, "openshift-kube-apiserver", "client-ca")
	fixture.Verify(t, fixture.Pool(t, []byte(clients.Data["ca-bundle.crt"])), fixture.Leaf(t, config.CertData), "", x509.ExtKeyUsageClientAuth)
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		t.Error(err)
	}
}

func namespaces(objects []runtime.Object) []runtime.Object {
	var found []runtime.Object
	seen := map[string]bool{}
	for _, o := range objects {
		name := o.(interface{ GetNamespace() string }).GetNamespace()
		if !seen[name] {
			seen[name] = true
			ns := &corev1.Namespace{}
			ns.APIVersion, ns.Kind, ns.Name = "v1", "Namespace", name
			found = append(found, ns)
		}
	}
	return found
}

func byName[T interface {
	runtime.Object
	GetName() string
	GetNamespace() string
}](t *testing.T, objects []runtime.Object, namespace, name string,
) T {
	t.Helper()
	for _, o := range objects {
		if typed, is := o.(T); is && typed.GetNamespace() == namespace && typed.GetName() == name {
			return typed
		}
	}
	t.Fatalf("no %s/%s", namespace, name)
	var none T
	return none
}
