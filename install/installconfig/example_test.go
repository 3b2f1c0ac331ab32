// SPDX-License-Identifier: Apache-2.0

package installconfig_test

import (
	"fmt"

	"github.com/solonode/sno/install/installconfig"
)

// All that is wrong is reported at once, and the number of control-plane nodes has no default.
func ExampleRead() {
	_, _, err := installconfig.Read("install-config.yaml", []byte(`apiVersion: v1
baseDomain: example.com
metadata:
  name: sno
controlPlane:
  replicas: 2
compute:
- replicas: 0
platform:
  aws:
    region: nowhere
`), installconfig.Options{Purpose: installconfig.AllInOne})
	fmt.Println(err)

	c, warnings, err := installconfig.Read("install-config.yaml", []byte(`apiVersion: v1
baseDomain: example.com
metadata:
  name: sno
  labels: {a: b}
controlPlane:
  replicas: 1
compute:
- replicas: 0
platform:
  none: {}
`), installconfig.Options{Purpose: installconfig.AllInOne})
	fmt.Println(c.Domain(), c.Networking.ServiceNetwork, warnings, err)
	// Output:
	// install-config.yaml:6: controlPlane.replicas: Invalid value: 2: a single node has one control-plane replica; write 1, or use openshift-install
	// install-config.yaml:10: platform.aws: Forbidden: bootstrap in place and all-in-one are for machines, not for clouds; remove the field
	// sno.example.com [172.30.0.0/16] [install-config.yaml:5: metadata.labels: without effect: only the name is used] <nil>
}
