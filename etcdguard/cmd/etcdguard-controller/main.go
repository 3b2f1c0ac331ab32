// SPDX-License-Identifier: Apache-2.0

// Command etcdguard-controller keeps the quorum guard of etcd at the right size, and removes it on a single
// control-plane node; see README.md.
package main

import (
	"os"

	"github.com/solonode/sno/etcdguard/controller"
	"github.com/solonode/sno/patch/run"
)

func main() {
	os.Exit(run.Main("etcdguard-controller", os.Args[1:], &controller.Module{}))
}
