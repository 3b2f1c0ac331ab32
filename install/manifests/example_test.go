// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"net/netip"

	"github.com/solonode/sno/install/manifests"
)

// sno-render issues certificates of etcd and kube-apiserver for the node's addresses.
func ExampleNode() {
	f, err := manifests.Node("master0", []netip.Addr{netip.MustParseAddr("192.0.2.10")})
	fmt.Println(string(f.Content), err)
	// Output:
	// apiVersion: v1
	// kind: Node
	// metadata:
	//   labels:
	//     kubernetes.io/hostname: master0
	//     node-role.kubernetes.io/control-plane: ""
	//     node-role.kubernetes.io/master: ""
	//   name: master0
	// status:
	//   addresses:
	//   - address: 192.0.2.10
	//     type: InternalIP
	//   - address: master0
	//     type: Hostname
	//  <nil>
}
