// SPDX-License-Identifier: Apache-2.0

// Command ingress-controller pins the default IngressController to the control plane where the topology asks for it;
// see README.md.
package main

import (
	"os"

	"github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("ingress-controller", os.Args[1:], &controller.Module{}))
}
