// SPDX-License-Identifier: Apache-2.0

// Command machineconfig-controller configures graceful shutdown on a single node, or handles drain requests where there
// is no machine-config operator; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("machineconfig-controller", os.Args[1:], &controller.Module{}))
}
