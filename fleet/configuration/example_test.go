// SPDX-License-Identifier: Apache-2.0

package configuration_test

import (
	"fmt"

	"github.com/solonode/sno/fleet/configuration"
)

// A change gets another name, which Open Cluster Management rolls out.
func ExampleConfiguration_Object() {
	c := configuration.Configuration{
		Modules: []string{"ingress"}, Image: "registry.example.com/{module}-controller:v1", DrainPolicy: "never", Placement: "topology",
	}
	fmt.Println(c.Object("open-cluster-management", "single-nodes").Name)
	c.Image = "registry.example.com/{module}-controller:v2"
	fmt.Println(c.Object("open-cluster-management", "single-nodes").Name)
	// Output:
	// single-nodes-c2d8b2512e
	// single-nodes-0adf61dc03
}
