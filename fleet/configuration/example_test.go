// SPDX-License-Identifier: Apache-2.0

package configuration_test

import (
	"fmt"

	"github.com/solonode/sno/fleet/configuration"
)

// A change gets another name, which Open Cluster Management rolls out.
func ExampleConfiguration_Object() {
	c := configuration.Configuration{
		Modules: []string{"ingress"}, DrainPolicy: "never", Placement: "topology",
		Image: "registry.example.com/{module}-controller:v1", Tool: "registry.example.com/kubectl-sno:v1",
	}
	fmt.Println(c.Object("open-cluster-management", "single-nodes").Name)
	c.Image = "registry.example.com/{module}-controller:v2"
	fmt.Println(c.Object("open-cluster-management", "single-nodes").Name)
	// Output:
	// single-nodes-ffbe395451
	// single-nodes-2fb50dc844
}
