// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render/document"
	"github.com/solonode/sno/render/inputs"
)

func ExampleRead() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	cluster, err := inputs.Read(os.DirFS("../testdata/input/one-node"), now)
	var faults document.Faults
	if errors.As(err, &faults) {
		for _, fault := range faults {
			fmt.Println(fault)
		}
		return
	}
	settings, err := cluster.Settings(inputs.Options{Profile: inputs.Kubernetes, Version: "1.35.2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range settings.Nodes {
		fmt.Println(node.Name, node.Addresses, cluster.Infrastructure.Status.ControlPlaneTopology)
	}
	fmt.Println(settings.Images["kube-apiserver"])
	// Output:
	// master-0 [192.168.126.10] SingleReplica
	// registry.k8s.io/kube-apiserver:v1.35.2
}
