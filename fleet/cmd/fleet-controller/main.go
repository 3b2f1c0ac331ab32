// SPDX-License-Identifier: Apache-2.0

// Command fleet-controller manages the add-on of a fleet on its hub, on Open Cluster Management; see docs/fleet.md.
package main

import (
	"os"

	"github.com/solonode/sno/fleet/controller"
)

func main() { os.Exit(controller.Main(os.Args[1:], os.Stderr)) }
