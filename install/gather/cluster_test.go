// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solonode/sno/render/rendertest"

	"github.com/solonode/sno/install/node"
)

func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The bundle has the resources of the kinds that the server has. Secrets are names only, and secrets in a ConfigMap are
// redacted (R-BIP-23).
func TestResources(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := rendertest.StartServer(t)
	client := kubernetes.NewForConfigOrDie(server.Config)
	secrets := plant(t)
	for _, err := range []error{
		func() error {
			_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: "cp-1", Labels: map[string]string{"node-role.kubernetes.io/master": ""},
			}}, metav1.CreateOptions{})
			return err
		}(),
		func() error {
			_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "planted-name", Annotations: map[string]string{"a": "planted-value"}},
				Data:       map[string][]byte{"x": []byte("planted-value")},
			}, metav1.CreateOptions{})
			return err
		}(),
		func() error {
			_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "planted"},
				Data:       map[string]string{"a": before + "\n" + secrets["PEM"].text + after, "b": secrets["pull secret"].text},
			}, metav1.CreateOptions{})
			return err
		}(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	put(t, root, node.LiveSettings, "profile: kubernetes\n")
	put(t, root, node.BootstrapKubeconfig, kubeconfig(t, server.Config))
	var out bytes.Buffer
	if err := Bundle(t.Context(), &out, Options{Root: root, ID: "1", Programs: programs(t, before)}); err != nil {
		t.Fatal(err)
	}
	if leaks := scan(t, out.Bytes()); len(leaks) > 0 {
		t.Errorf("the bundle has secrets: %v", leaks)
	}
	all := unpacked(t, out.Bytes())
	for name, want := range map[string]string{
		"nodes.json": `"cp-1"`, "nodes.list": "cp-1\n", "masters.list": "cp-1\n", "configmaps.json": before + `\n`, "secrets-names.txt": "planted-name",
		"etcd.json": `"EtcdList"`, "pods.json": `"PodList"`,
	} {
		if got := all["log-bundle-1/resources/"+name]; !strings.Contains(got, want) {
			t.Errorf("%s has no %q: %s", name, want, got)
		}
	}
	for name, text := range all {
		for _, secret := range append(slices.Clone(secrets["PEM"].secrets), secrets["pull secret"].secrets[0], "planted-value", "cGxhbnRlZC12YWx1ZQ") {
			if strings.Contains(text, secret) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
	if _, ok := all["log-bundle-1/resources/clusterversion.json"]; ok || strings.Contains(all["log-bundle-1/gather.log"], "clusterversions") {
		t.Error("a kind that the server lacks is in the bundle or in the notes")
	}
}

// The scripts write the result to where openshift-install and upstream's gather script fetch it.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sno-install")
	bundle := filepath.Join(dir, "bundle.tar.gz")
	if err := os.WriteFile(bundle, zip(t, archive(t, map[string]string{"log-bundle-7/journals/kubelet.log": before})), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"sno-install": "echo \"$*\" >>" + dir + "/arguments; cat " + bundle, "sudo": "exec \"$@\""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runScript(t, dir, strings.ReplaceAll(Script(), "/"+node.Program, program))
	if got, err := os.ReadFile(filepath.Join(dir, "log-bundle-7.tar.gz")); err != nil || len(unpacked(t, got)) != 1 {
		t.Errorf("%v: no bundle in the home folder", err)
	}
	// A link that another user has created there is replaced, and not followed.
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "artifacts-7")); err != nil {
		t.Fatal(err)
	}
	masters := strings.ReplaceAll(MastersScript(), "/"+node.Program, program)
	runScript(t, dir, masters)
	runScript(t, dir, masters)
	if info, err := os.Lstat(filepath.Join(dir, "artifacts-7")); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v: want a private folder", info, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "artifacts-7", "journals", "kubelet.log")); err != nil || string(got) != before {
		t.Errorf("%q, %v: no files of the node", got, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if want := "gather --id 7 --output -\n" + strings.Repeat("gather --id 7 --node-only --output -\n", 2); err != nil || string(got) != want {
		t.Errorf("arguments %q, %v, want %q", got, err, want)
	}
}

func runScript(t *testing.T, dir, script string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "gather.sh", "--id", "7")
	command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
