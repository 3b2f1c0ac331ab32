// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openshift/library-go/pkg/operator/staticpod/installerpod"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// The files are the same, including modes, as those of the stock installer pod, which runs over the same objects
// (R-REN-8). Its wait of half a minute passes immediately in the bubble.
func TestFilesLikeInstallerPod(t *testing.T) {
	const (
		revision = "7"
		node     = "node-0.example"
	)
	pod := staticpods.Pod{
		Name: "kube-apiserver-pod", Namespace: namespace,
		ConfigMaps: []staticpods.Resource{{Name: "kube-apiserver-pod"}, {Name: "config"}, {Name: "cloud-config", Optional: true}},
		Secrets:    []staticpods.Resource{{Name: "etcd-client"}, {Name: "encryption-config", Optional: true}},
		CertDir:    "kube-apiserver-certs", CertConfigMaps: []staticpods.Resource{{Name: "client-ca"}, {Name: "trusted-ca-bundle", Optional: true}},
		CertSecrets: []staticpods.Resource{{Name: "aggregator-client"}, {Name: "user-serving-cert-000", Optional: true}},
	}
	objects := []runtime.Object{
		configMap("kube-apiserver-pod-7", map[string]string{
			"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\n  labels: {revision: \"REVISION\"}\nspec:\n  containers:\n" +
				"  - name: kube-apiserver\n    image: i\n    env: [{name: NODE_NODE_ENVVAR_NAME_URL, value: NODE_NAME}]\n",
			"recovery-pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: recovery}\n",
			"version":           "REVISION",
		}),
		configMap("config-7", map[string]string{"config.yaml": "node: NODE_NAME", "run.sh": "echo REVISION"}),
		secret("etcd-client-7", map[string][]byte{"tls.key": []byte("key of NODE_NAME"), "run.sh": []byte("echo")}),
		configMap("client-ca", map[string]string{"ca-bundle.crt": "ca"}),
		secret("aggregator-client", map[string][]byte{"tls.crt": []byte("crt")}),
		secret("user-serving-cert-000", map[string][]byte{"tls.crt": []byte("user")}),
	}

	root := t.TempDir()
	dir := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	synctest.Test(t, func(t *testing.T) {
		s, err := store.New(append(objects,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.35.2"}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installer-7-" + node, Labels: map[string]string{"app": "installer"}}, Spec: corev1.PodSpec{NodeName: node}},
		)...)
		if err != nil {
			t.Fatal(err)
		}
		installer := installerpod.NewInstallOptions()
		installer.KubeClient = s.Session("installer", store.Pattern{Resource: "events", Namespace: "*", Name: "*"}).Kube()
		installer.Clock = clock.RealClock{}
		installer.Revision, installer.NodeName, installer.Namespace = revision, node, namespace
		installer.PodConfigMapNamePrefix = pod.Name
		installer.ConfigMapNamePrefixes, installer.OptionalConfigMapNamePrefixes = split(pod.ConfigMaps)
		installer.SecretNamePrefixes, installer.OptionalSecretNamePrefixes = split(pod.Secrets)
		installer.CertConfigMapNamePrefixes, installer.OptionalCertConfigMapNamePrefixes = split(pod.CertConfigMaps)
		installer.CertSecretNames, installer.OptionalCertSecretNamePrefixes = split(pod.CertSecrets)
		installer.ResourceDir, installer.PodManifestDir = dir(staticpods.ResourceDir), dir(staticpods.ManifestDir)
		installer.CertDir = dir(staticpods.ResourceDir + "/" + pod.CertDir)
		installer.Timeout = time.Minute
		if err := installer.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})

	installed, err := staticpods.Files(objects, pod, 7, node)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	for _, f := range installed {
		ours[f.Path] = f.Mode.String() + " " + string(f.Content)
	}
	if diff := cmp.Diff(tree(t, root), ours); diff != "" {
		t.Errorf("files differ from the installer pod's (-its +ours):\n%s", diff)
	}
}

func split(resources []staticpods.Resource) (required, optional []string) {
	for _, r := range resources {
		if r.Optional {
			optional = append(optional, r.Name)
		} else {
			required = append(required, r.Name)
		}
	}
	return required, optional
}

func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	folder := os.DirFS(root)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		info, infoErr := entry.Info()
		if err := errors.Join(err, infoErr); err != nil {
			return err
		}
		found[name] = info.Mode().String() + " " + string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
