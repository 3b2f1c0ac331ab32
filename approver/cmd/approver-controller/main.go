// SPDX-License-Identifier: Apache-2.0

// Command approver-controller keeps the stock machine approver from approving client certificates where there are no
// Machines.
package main

import (
	"os"

	"github.com/solonode/sno/approver/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("approver-controller", os.Args[1:], &controller.Module{}))
}
