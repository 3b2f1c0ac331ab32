package controller

import (
	"os"
	"testing"

	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
)

// shared serves what a cluster with a machine-config operator serves. Whether the operator is there is a matter of objects.
var shared = patchtest.NewShared(patchtest.Options{CRDs: append([]string{patchtest.Infrastructures}, stockKinds...)})

var stockKinds = []string{
	"machineconfigpools.machineconfiguration.openshift.io", "controllerconfigs.machineconfiguration.openshift.io",
	"kubeletconfigs.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io",
	"machineconfigurations.operator.openshift.io",
}

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("machineconfig-controller", args, &Module{}) })
	os.Exit(shared.Main(m))
}
