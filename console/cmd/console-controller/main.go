// SPDX-License-Identifier: Apache-2.0

// Command console-controller runs the controller of module console; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/console/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("console-controller", os.Args[1:], &controller.Module{}))
}
