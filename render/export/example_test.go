// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/export"
)

func ExampleManifests() {
	manifests, err := export.Manifests([]runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-pod", ResourceVersion: "12"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-etcd"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, manifest := range manifests {
		fmt.Printf("%s\n%s", manifest.Name, manifest.Content)
	}
	// Output:
	// 0001_namespace_openshift-etcd.yaml
	// apiVersion: v1
	// kind: Namespace
	// metadata:
	//   name: openshift-etcd
	// spec: {}
	// 0002_openshift-etcd_configmap_etcd-pod.yaml
	// apiVersion: v1
	// kind: ConfigMap
	// metadata:
	//   name: etcd-pod
	//   namespace: openshift-etcd
}
