// SPDX-License-Identifier: Apache-2.0

package kubeapiserver_test

import (
	"fmt"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubeapiserver"
)

func ExampleSteps() {
	for _, step := range kubeapiserver.Steps(fixture.Settings(inputs.Kubernetes, "192.168.126.10")) {
		for _, loop := range step.Loops {
			fmt.Println(loop.Name)
		}
	}
	// Output:
	// kube-apiserver: certificates
	// openshift-kube-apiserver: encryption: key
	// openshift-kube-apiserver: encryption: state
	// openshift-kube-apiserver: encryption: migration
	// kube-apiserver: bound tokens
	// kube-apiserver: static resources
	// kube-apiserver: config observation
	// kube-apiserver: target config
	// kube-apiserver: resource sync
	// kube-apiserver: revision
	// kube-apiserver: revision of the nodes
}

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
