// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"

	"github.com/solonode/sno/install/network"
)

func ExampleParse() {
	c, err := network.Parse("network.yaml", []byte(`
interfaces:
- name: enp1s0
  type: ethernet
  ipv4:
    enabled: true
    address:
    - {ip: 192.0.2.10, prefix-length: 24}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: enp1s0}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Addresses())
	for _, f := range c.Keyfiles() {
		fmt.Printf("%s, mode %o:\n%s", f.Path, f.Mode, f.Content)
	}
	// Output:
	// [192.0.2.10/24]
	// etc/NetworkManager/system-connections/enp1s0.nmconnection, mode 600:
	// [connection]
	// id=enp1s0
	// uuid=0e635038-4670-54f8-9a7c-28b7b064b9ae
	// type=ethernet
	// interface-name=enp1s0
	// autoconnect-priority=1
	//
	// [ipv4]
	// method=manual
	// address1=192.0.2.10/24
	// route1=0.0.0.0/0,192.0.2.1
	// route1_options=table=254
	//
	// [ipv6]
	// method=disabled
}

// All that is wrong is reported at once, with line, field and advice.
func ExampleParse_errors() {
	_, err := network.Parse("network.yaml", []byte(`interfaces:
- name: enp1s0
  type: ethernet
  state: absent
  mtu: large
`))
	fmt.Println(err)
	// Output:
	// network.yaml:4: interfaces[0].state: Unsupported value: "absent": supported values: "up"
	// network.yaml:5: interfaces[0].mtu: Invalid value: "large": write a number from 68 to 65535
}
