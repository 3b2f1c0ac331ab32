// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"fmt"
	"net/netip"

	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/kubelet"
)

// The kubelet of a machine with its own control plane joins that.
func ExampleAddMember() {
	var b ignition.Builder
	err := kubelet.AddMember(&b, "example", kubelet.Containerd, netip.MustParsePrefix("10.128.0.0/23"), netip.MustParseAddr("172.30.0.10"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := b.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	parsed, err := ignition.Parse("example", text)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range parsed.Paths() {
		fmt.Println(path)
	}
	// Output:
	// /etc/cni/net.d/10-sno.conflist
	// /etc/kubernetes/kubelet.conf
	// /etc/kubernetes/kubelet.conf.d
}
