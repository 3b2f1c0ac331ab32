// SPDX-License-Identifier: Apache-2.0

package staticpods_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/staticpods"
)

func ExampleFiles() {
	objects := []runtime.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-kube-scheduler", Name: "kube-scheduler-pod-4"},
			Data:       map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec: {nodeName: NODE_NAME}\n"},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-kube-scheduler", Name: "kube-scheduler-client-cert-key"},
			Data:       map[string][]byte{"tls.key": []byte("key")},
		},
	}
	pod := staticpods.Pod{
		Name: "kube-scheduler-pod", Namespace: "openshift-kube-scheduler",
		ConfigMaps: []staticpods.Resource{{Name: "kube-scheduler-pod"}},
		CertDir:    "kube-scheduler-certs", CertSecrets: []staticpods.Resource{{Name: "kube-scheduler-client-cert-key"}},
	}
	files, err := staticpods.Files(objects, pod, 4, "node-0")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range files {
		fmt.Println(file.Mode, file.Path)
	}
	// Output:
	// -rw------- etc/kubernetes/manifests/kube-scheduler-pod.yaml
	// -rw------- etc/kubernetes/static-pod-resources/kube-scheduler-certs/secrets/kube-scheduler-client-cert-key/tls.key
	// -rw------- etc/kubernetes/static-pod-resources/kube-scheduler-pod-4/configmaps/kube-scheduler-pod/pod.yaml
	// -rw------- etc/kubernetes/static-pod-resources/kube-scheduler-pod-4/kube-scheduler-pod.yaml
}
