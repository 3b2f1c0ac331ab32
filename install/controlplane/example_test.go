// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"net/netip"

	"github.com/solonode/sno/install/controlplane"
	"github.com/solonode/sno/install/node"
)

// Of several addresses, the node gets the one in the machine network.
func ExampleCompleteSettings() {
	s, err := controlplane.CompleteSettings(
		node.Settings{MachineNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		controlplane.Host{Name: "master0", Interfaces: []controlplane.Interface{
			{Name: "eno1", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.7/24"), netip.MustParsePrefix("192.0.2.10/24")}},
		}})
	fmt.Println(s.Name, s.Addresses, err)
	// Output: master0 [192.0.2.10] <nil>
}
