// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"fmt"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubescheduler"
)

func ExampleSteps() {
	for _, step := range kubescheduler.Steps(fixture.Settings(inputs.Kubernetes, "192.168.126.10")) {
		for _, loop := range step.Loops {
			fmt.Println(loop.Name)
		}
	}
	// Output:
	// kube-scheduler: static resources
	// kube-scheduler: config observation
	// kube-scheduler: target config
	// kube-scheduler: resource sync
	// kube-scheduler: revision
	// kube-scheduler: revision of the nodes
}
