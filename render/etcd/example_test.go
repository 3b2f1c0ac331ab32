// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"

	"github.com/solonode/sno/render/etcd"
	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
)

func ExampleSteps() {
	for _, step := range etcd.Steps(fixture.Settings(inputs.Kubernetes, "192.168.126.10")) {
		for _, loop := range step.Loops {
			fmt.Println(loop.Name)
		}
	}
	// Output:
	// etcd: certificates
	// etcd: all certificates
	// etcd: endpoints
	// etcd: static resources
	// etcd: config observation
	// etcd: target config
	// etcd: resource sync
	// etcd: revision
	// etcd: revision of the nodes
}
