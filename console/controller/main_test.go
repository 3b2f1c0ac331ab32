package controller

import (
	"os"
	"testing"

	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
)

// shared serves what a cluster with a console operator and a cluster-version-operator serves.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{
	patchtest.Infrastructures, patchtest.ClusterVersions, patchtest.Consoles,
}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("console-controller", args, &Module{}) })
	os.Exit(shared.Main(m))
}
