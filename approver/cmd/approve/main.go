// Command approve approves the certificate signing requests of nodes, outside of the cluster, that an inventory or the kubelets prove.
package main

import (
	"os"

	"github.com/solonode/sno/approver/approve"
)

func main() {
	os.Exit(approve.Main(os.Args[1:], os.Stdout, os.Stderr))
}
