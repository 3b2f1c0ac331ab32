// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render"
	"github.com/solonode/sno/render/inputs"
)

// The loops of all components in their order (R-REN-6). A + is before a further loop of the same step.
func ExamplePlan() {
	cluster, err := inputs.Read(os.DirFS("testdata/input/one-node"), time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	settings, err := cluster.Settings(inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range render.Plan(settings) {
		for i, loop := range step.Loops {
			if i > 0 {
				fmt.Print("+ ")
			}
			fmt.Println(loop.Name)
		}
	}
	// Output:
	// etcd: certificates
	// etcd: all certificates
	// etcd: endpoints
	// etcd: static resources
	// etcd: config observation
	// + etcd: target config
	// + etcd: resource sync
	// etcd: revision
	// etcd: revision of the nodes
	// kube-controller-manager: certificates
	// + kube-controller-manager: signer of certificate requests
	// + kube-controller-manager: key of ServiceAccount tokens
	// + kube-controller-manager: bundle for others
	// kube-apiserver: certificates
	// openshift-kube-apiserver: encryption: key
	// + openshift-kube-apiserver: encryption: state
	// + openshift-kube-apiserver: encryption: migration
	// kube-apiserver: bound tokens
	// kube-apiserver: static resources
	// kube-apiserver: config observation
	// + kube-apiserver: target config
	// + kube-apiserver: resource sync
	// kube-apiserver: revision
	// kube-apiserver: revision of the nodes
	// kube-controller-manager: static resources
	// kube-controller-manager: config observation
	// + kube-controller-manager: target config
	// + kube-controller-manager: resource sync
	// kube-controller-manager: revision
	// kube-controller-manager: revision of the nodes
	// kube-scheduler: static resources
	// kube-scheduler: config observation
	// + kube-scheduler: target config
	// + kube-scheduler: resource sync
	// kube-scheduler: revision
	// kube-scheduler: revision of the nodes
}
