// Command approve approves the certificate signing requests of nodes that an inventory and the nodes themselves prove. It runs outside
// the cluster, also on a hub; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/approver/controller/outside"
)

func main() {
	os.Exit(outside.Main(os.Args[1:], os.Stdout, os.Stderr))
}
