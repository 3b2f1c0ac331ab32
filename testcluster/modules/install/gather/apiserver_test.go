// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/install/gather"
	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/testcluster/apiserver"
)

// The bundle has the resources of the kinds that the server has. Secrets are names only, and secrets in a ConfigMap are
// redacted (R-BIP-23).
func TestResources(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{"etcds.operator.openshift.io"}})
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	apiserver.NoError(t, err)
	block, err := keyutil.MarshalPrivateKeyToPEM(key)
	apiserver.NoError(t, err)
	const pullSecret = "cGxhbnRlZC1wdWxsOnNlY3JldC12YWx1ZQ=="
	for _, object := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "planted-name", Annotations: map[string]string{"a": "planted-value"}},
			Data: map[string][]byte{"x": []byte("planted-value")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "planted"}, Data: map[string]string{
			"a": "before\n" + string(block) + "after", "b": `{"auths":{"registry.example.com":{"auth":"` + pullSecret + `"}}}`}},
	} {
		apiserver.NoError(t, server.Admin(t).Create(t.Context(), object))
	}
	root := t.TempDir()
	kubeconfig, err := os.ReadFile(server.Kubeconfig(t, "gather", "system:masters"))
	apiserver.NoError(t, err)
	for name, text := range map[string]string{node.LiveSettings: "profile: kubernetes\n", node.BootstrapKubeconfig: string(kubeconfig)} {
		file := filepath.Join(root, name)
		apiserver.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		apiserver.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	t.Setenv("PATH", t.TempDir())
	bundle, err := gather.Bundle(t.Context(), gather.Options{Root: root, ID: "1"})
	apiserver.NoError(t, err)
	all := unpacked(t, bytes.NewReader(bundle))
	for name, want := range map[string]string{
		"nodes.json": `"cp-1"`, "configmaps.json": `"name": "planted"`, "secrets-names.txt": "default/planted-name\n",
		"etcd.json": `"EtcdList"`, "pods.json": `"PodList"`,
	} {
		if got := all["log-bundle-1/resources/"+name]; !strings.Contains(got, want) {
			t.Errorf("%s has no %q: %s", name, want, got)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(block)), "\n")
	for name, text := range all {
		for _, secret := range append(lines[1:len(lines)-1], pullSecret, "planted-value", "cGxhbnRlZC12YWx1ZQ") {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret %s", name, secret)
			}
		}
	}
	if _, ok := all["log-bundle-1/resources/clusterversion.json"]; ok || strings.Contains(all["log-bundle-1/gather.log"], "clusterversions") {
		t.Error("a kind that the server lacks is in the bundle or in the notes")
	}
}

func unpacked(t *testing.T, bundle io.Reader) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bundle)
	apiserver.NoError(t, err)
	all := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		apiserver.NoError(t, err)
		content, err := io.ReadAll(archive)
		apiserver.NoError(t, err)
		all[header.Name] = string(content)
	}
}
