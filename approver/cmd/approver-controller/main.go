// Command approver-controller keeps the stock machine approver from approving new nodes on one source's word, and tells of requests
// and certificates that wait for somebody. It runs beside the stock approver; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/approver/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("approver-controller", os.Args[1:], controller.NewModule()))
}
