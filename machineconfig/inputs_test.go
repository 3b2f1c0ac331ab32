package machineconfig_test

import (
	"errors"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
)

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		machineconfig.FieldOwner:                 "sno.solonode.github.io/machineconfig",
		machineconfig.ShutdownName:               "sno-graceful-shutdown",
		machineconfig.ShutdownMachineConfigName:  "99-master-sno-graceful-shutdown",
		machineconfig.ConditionPrefix:            "MachineConfigTopology",
		machineconfig.DesiredDrainAnnotation:     "machineconfiguration.openshift.io/desiredDrain",
		machineconfig.LastAppliedDrainAnnotation: "machineconfiguration.openshift.io/lastAppliedDrain",
	} {
		if got != want {
			t.Errorf("%s, want %s: it must never change", got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name string
		in   machineconfig.Inputs
		ok   bool
	}{
		{"nothing", machineconfig.Inputs{}, true},
		{"known words", machineconfig.Inputs{Policy: machineconfig.DrainWorkers, Graceful: machineconfig.GracefulOff, ShutdownBound: machineconfig.MinShutdownBound}, true},
		{"unknown policy", machineconfig.Inputs{Policy: "all"}, false},
		{"unknown word on graceful shutdown", machineconfig.Inputs{Graceful: "yes"}, false},
		{"negative bound", machineconfig.Inputs{ShutdownBound: -time.Second}, false},
		{"low bound", machineconfig.Inputs{ShutdownBound: machineconfig.MinShutdownBound - 1}, false},
		{"another MachineConfig", machineconfig.Inputs{MachineConfig: &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "00-master"}}}, false},
		{"another MachineConfiguration", machineconfig.Inputs{MachineConfiguration: &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}, false},
	} {
		if err := test.in.Validate(); (err == nil) != test.ok || (err != nil && !errors.Is(err, machineconfig.ErrInputs)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
