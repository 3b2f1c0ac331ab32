// Command etcdguard-controller keeps the quorum guard of etcd at the right size, and removes it where there is one control-plane
// node. It runs beside a stock etcd operator and the cluster-version-operator; see the module's README.md.
package main

import (
	"os"

	"github.com/solonode/sno/etcdguard/controller"
	"github.com/solonode/sno/patch/manager"
)

func main() {
	os.Exit(manager.Main("etcdguard-controller", os.Args[1:], &controller.Module{}))
}
