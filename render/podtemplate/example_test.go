// SPDX-License-Identifier: Apache-2.0

package podtemplate_test

import (
	"fmt"

	"github.com/solonode/sno/render/podtemplate"
)

func ExampleNew() {
	pod := podtemplate.NewPod("openshift-etcd", "etcd", "etcd", map[string]string{"app": "etcd"}, nil)
	fmt.Println(pod.Labels["revision"])
	for _, v := range pod.Spec.Volumes {
		fmt.Println(v.Name, v.HostPath.Path)
	}
	// Output:
	// REVISION
	// resource-dir /etc/kubernetes/static-pod-resources/etcd-pod-REVISION
	// cert-dir /etc/kubernetes/static-pod-resources/etcd-certs
}
