// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"fmt"

	"github.com/solonode/sno/install/bootstrap"
)

func ExamplePhases() {
	for _, p := range bootstrap.Phases(bootstrap.Options{Root: "/", Endpoints: bootstrap.LocalEndpoints()}) {
		fmt.Println(p.Name, p.Limit)
	}
	// Output:
	// preflight 2m0s
	// release-payload 30m0s
	// render 1h0m0s
	// static-pods 10m0s
	// api 30m0s
	// apply-manifests 1h0m0s
	// master-ignition 30m0s
	// log-bundle 10m0s
	// stop-control-plane 10m0s
	// snapshot 10m0s
	// stop-etcd 10m0s
	// enrich 10m0s
	// write-disk 1h0m0s
	// reboot 10m0s
}
