// Command machineconfig-controller drains the nodes of a cluster before they restart, but for the only node of a control plane, which
// it has stop its workloads gracefully instead. It runs beside a stock machine-config operator, or where there is none; see the
// module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("machineconfig-controller", os.Args[1:], &controller.Module{}))
}
