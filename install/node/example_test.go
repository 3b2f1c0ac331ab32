// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"

	"github.com/solonode/sno/install/node"
)

func ExampleSettings_Encode() {
	s := node.Settings{Profile: "kubernetes", ClusterName: "sno", BaseDomain: "example.com", KubernetesVersion: "1.35.2", Validity: "87600h0m0s", Created: "2026-11-25T08:00:00Z"}
	text, err := s.Encode()
	fmt.Print(string(text), err)
	// Output:
	// baseDomain: example.com
	// clusterName: sno
	// created: "2026-11-25T08:00:00Z"
	// kubernetesVersion: 1.35.2
	// profile: kubernetes
	// validity: 87600h0m0s
	// <nil>
}
