// Command console-controller gives the console and its downloads server one replica where there is one control-plane node. It
// runs beside a stock console operator, or where there is none; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/console/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("console-controller", os.Args[1:], &controller.Module{}))
}
