// SPDX-License-Identifier: Apache-2.0

// Command approve approves, from outside the cluster, certificate signing requests of nodes that an inventory or a
// kubelet proves.
package main

import (
	"os"

	"github.com/solonode/sno/approver/approve"
)

func main() {
	os.Exit(approve.Main(os.Args[1:], os.Stdout, os.Stderr))
}
