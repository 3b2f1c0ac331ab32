// SPDX-License-Identifier: Apache-2.0

package staticpods_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/staticpods"
)

const namespace = "openshift-etcd"

const manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, uid: 1-2-3, labels: {revision: \"REVISION\"}}\nspec: {nodeName: NODE_NAME, containers: [{name: NODE_ENVVAR_NAME}]}\n"

func configMap(name string, data map[string]string) runtime.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func secret(name string, data map[string][]byte) runtime.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func pod() staticpods.Pod {
	return staticpods.Pod{
		Name: "etcd-pod", Namespace: namespace,
		ConfigMaps: []staticpods.Resource{{Name: "etcd-pod"}, {Name: "scripts"}, {Name: "cloud", Optional: true}},
		Secrets:    []staticpods.Resource{{Name: "peer"}, {Name: "extra", Optional: true}},
		CertDir:    "etcd-certs", CertConfigMaps: []staticpods.Resource{{Name: "ca"}, {Name: "trusted", Optional: true}}, CertSecrets: []staticpods.Resource{{Name: "all"}},
	}
}

func objects() map[string]runtime.Object {
	return map[string]runtime.Object{
		"pod":      configMap("etcd-pod-3", map[string]string{"pod.yaml": manifest, "version": "REVISION of NODE_NAME"}),
		"scripts":  configMap("scripts-3", map[string]string{"run.sh": "exec NODE_NODE_ENVVAR_NAME", "a": "b"}),
		"peer":     secret("peer-3", map[string][]byte{"tls.key": []byte("key"), "run.sh": {0xff, 'R'}}),
		"ca":       configMap("ca", map[string]string{"ca.crt": "ca"}),
		"all":      secret("all", map[string][]byte{"b.key": []byte("b"), "a.key": []byte("a")}),
		"old":      configMap("etcd-pod-2", map[string]string{"pod.yaml": "old"}),
		"theirs":   &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "etcd-pod-3"}, Data: map[string]string{"pod.yaml": "foreign"}},
		"declared": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	}
}

func list(objects map[string]runtime.Object, but ...string) []runtime.Object {
	var listed []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if !slices.Contains(but, name) {
			listed = append(listed, objects[name])
		}
	}
	return listed
}

// R-REN-8.
func TestFiles(t *testing.T) {
	given := objects()
	given["extra"] = secret("extra-3", map[string][]byte{"k": []byte("v")})
	installed, err := staticpods.Files(list(given), pod(), 3, "node-0.example")
	if err != nil {
		t.Fatal(err)
	}
	const encoded = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"etcd","labels":{"revision":"3"}},"spec":{"containers":[{"name":"node_0_example","resources":{}}],"nodeName":"node-0.example"},"status":{}}` + "\n"
	want := []string{
		"etc/kubernetes/manifests/etcd-pod.yaml 600 " + encoded,
		"etc/kubernetes/static-pod-resources/etcd-certs/configmaps/ca/ca.crt 600 ca",
		"etc/kubernetes/static-pod-resources/etcd-certs/secrets/all/a.key 600 a",
		"etc/kubernetes/static-pod-resources/etcd-certs/secrets/all/b.key 600 b",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/configmaps/etcd-pod/pod.yaml 600 " + strings.NewReplacer("REVISION", "3", "NODE_NAME", "node-0.example", "NODE_ENVVAR_NAME", "node_0_example").Replace(manifest),
		"etc/kubernetes/static-pod-resources/etcd-pod-3/configmaps/etcd-pod/version 600 3 of node-0.example",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/configmaps/scripts/a 600 b",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/configmaps/scripts/run.sh 755 exec NODE_node_0_example",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/etcd-pod.yaml 600 " + encoded,
		"etc/kubernetes/static-pod-resources/etcd-pod-3/secrets/extra/k 600 v",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/secrets/peer/run.sh 700 \xffR",
		"etc/kubernetes/static-pod-resources/etcd-pod-3/secrets/peer/tls.key 600 key",
	}
	var got []string
	for _, file := range installed {
		got = append(got, fmt.Sprintf("%s %o %s", file.Path, file.Mode, file.Content))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFilesWithoutCertificates(t *testing.T) {
	p := pod()
	p.CertDir = ""
	installed, err := staticpods.Files(list(objects(), "ca", "all"), p, 3, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range installed {
		if strings.Contains(file.Path, "certs") {
			t.Errorf("there is %s", file.Path)
		}
	}
}

func TestFilesErrors(t *testing.T) {
	podWith := func(text string) map[string]runtime.Object {
		changed := objects()
		changed["pod"] = configMap("etcd-pod-3", map[string]string{"pod.yaml": text})
		return changed
	}
	for _, test := range []struct {
		name     string
		objects  []runtime.Object
		is       error
		contains []string
	}{
		{
			"everything is missing, and named at once", list(objects(), "pod", "scripts", "peer", "ca", "all"), staticpods.ErrMissing,
			[]string{"configmap openshift-etcd/etcd-pod-3", "configmap openshift-etcd/scripts-3", "secret openshift-etcd/peer-3", "configmap openshift-etcd/ca", "secret openshift-etcd/all"},
		},
		{"one is missing", list(objects(), "scripts"), staticpods.ErrMissing, []string{"configmap openshift-etcd/scripts-3"}},
		{"the pod is missing", list(objects(), "pod"), staticpods.ErrMissing, []string{"configmap openshift-etcd/etcd-pod-3"}},
		{"no manifest in the ConfigMap", list(func() map[string]runtime.Object {
			changed := objects()
			changed["pod"] = configMap("etcd-pod-3", nil)
			return changed
		}()), staticpods.ErrMissing, []string{"configmap openshift-etcd/etcd-pod-3", "pod.yaml"}},
		{"no YAML", list(podWith("{")), staticpods.ErrInvalidPod, []string{"configmap openshift-etcd/etcd-pod-3", "pod.yaml"}},
		{"an unknown field", list(podWith("apiVersion: v1\nkind: Pod\nspec: {container: []}\n")), staticpods.ErrInvalidPod, []string{"pod.yaml", "spec.container"}},
		{"another kind", list(podWith("apiVersion: v1\nkind: Service\n")), staticpods.ErrInvalidPod, []string{"pod.yaml", "v1.Service"}},
		{"a bad manifest and something missing", list(podWith("{"), "peer"), staticpods.ErrInvalidPod, []string{"secret openshift-etcd/peer-3", "pod.yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			installed, err := staticpods.Files(test.objects, pod(), 3, "a")
			if !errors.Is(err, test.is) || len(installed) > 0 {
				t.Errorf("got %v and %d files, want %v", err, len(installed), test.is)
			}
			for _, part := range test.contains {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "cloud") {
				t.Errorf("what is optional is missing: %v", err)
			}
		})
	}
}
