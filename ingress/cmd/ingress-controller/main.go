// Command ingress-controller pins the default IngressController to the control plane where the topology asks for it. It runs
// beside a stock ingress operator; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("ingress-controller", os.Args[1:], &controller.Module{}))
}
