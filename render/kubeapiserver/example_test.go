// SPDX-License-Identifier: Apache-2.0

package kubeapiserver_test

import (
	"fmt"

	"github.com/solonode/sno/render/kubeapiserver"
)

func ExampleFlags() {
	config := map[string]any{
		"servicesSubnet":     "172.30.0.0/16",
		"servingInfo":        map[string]any{"bindAddress": "0.0.0.0:6443", "bindNetwork": "tcp4"},
		"apiServerArguments": map[string]any{"authorization-mode": []any{"Scope", "SystemMasters", "RBAC", "Node"}},
	}
	flags, _, err := kubeapiserver.Flags(config, nil)
	if err != nil {
		fmt.Println(err)
	}
	for _, flag := range flags {
		fmt.Println(flag)
	}
	// Output:
	// --authorization-mode=RBAC,Node
	// --bind-address=0.0.0.0
	// --secure-port=6443
	// --service-cluster-ip-range=172.30.0.0/16
}
