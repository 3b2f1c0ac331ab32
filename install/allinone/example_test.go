// SPDX-License-Identifier: Apache-2.0

package allinone_test

import (
	"fmt"

	"github.com/solonode/sno/install/allinone"
	"github.com/solonode/sno/install/controlplane"
)

func ExamplePhases() {
	m := allinone.NewMachine(controlplane.Machine{Root: "/"})
	for _, p := range allinone.Phases(m) {
		fmt.Println(p.Name, p.Limit)
	}
	fmt.Println("and later:")
	for _, p := range allinone.Rotate(m, allinone.Kubelet{}) {
		fmt.Println(p.Name, p.Limit)
	}
	// Output:
	// render 10m0s
	// static-pods 10m0s
	// api 30m0s
	// apply-manifests 30m0s
	// join 30m0s
	// finish 10m0s
	// and later:
	// rotate 10m0s
	// static-pods 10m0s
	// api 1m0s
	// apply-manifests 1m0s
	// kubelet 1m0s
	// join 1m0s
}
