// Command auth-controller keeps the OAuth servers working on clusters with fewer than three control-plane nodes. It runs beside a
// stock authentication operator; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/auth/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("auth-controller", os.Args[1:], &controller.Module{}))
}
