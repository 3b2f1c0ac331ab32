// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager_test

import (
	"fmt"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/loop"
)

func Example() {
	s := fixture.Settings(inputs.Kubernetes, "192.168.126.10")
	// kube-apiserver's loops run between the first step and the others.
	for _, step := range append([]loop.Step{kubecontrollermanager.Certificates(s)}, kubecontrollermanager.Steps(s)...) {
		for _, loop := range step.Loops {
			fmt.Println(loop.Name)
		}
	}
	// Output:
	// kube-controller-manager: certificates
	// kube-controller-manager: signer of certificate requests
	// kube-controller-manager: key of ServiceAccount tokens
	// kube-controller-manager: bundle for others
	// kube-controller-manager: static resources
	// kube-controller-manager: config observation
	// kube-controller-manager: target config
	// kube-controller-manager: resource sync
	// kube-controller-manager: revision
	// kube-controller-manager: revision of the nodes
}
