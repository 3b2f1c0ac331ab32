package machineconfig_test

import (
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

func TestObserve(t *testing.T) {
	inForce := written("1m30s", "90", "30s")
	word := func(kind mcfgv1.KubeletConfigStatusConditionType, status corev1.ConditionStatus, second int64) mcfgv1.KubeletConfigCondition {
		return mcfgv1.KubeletConfigCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(time.Unix(second, 0))}
	}
	says := func(conditions ...mcfgv1.KubeletConfigCondition) func(*machineconfig.Inputs) {
		return func(in *machineconfig.Inputs) { in.KubeletConfigs[0].Status.Conditions = conditions }
	}
	yes, no := word(mcfgv1.KubeletConfigSuccess, corev1.ConditionTrue, 1), word(mcfgv1.KubeletConfigFailure, corev1.ConditionFalse, 2)
	later := word(mcfgv1.KubeletConfigSuccess, corev1.ConditionTrue, 3)
	for _, test := range []struct {
		name   string
		in     machineconfig.Inputs
		state  patch.State
		reason string
	}{
		{"in force", single(inForce), patch.InForce, machineconfig.ReasonAsExpected},
		{"accepted", single(inForce, says(yes)), patch.InForce, machineconfig.ReasonAsExpected},
		{"refused", single(inForce, says(yes, no)), patch.Failed, machineconfig.ReasonInvalid},
		{"refused, in any order", single(inForce, says(no, yes)), patch.Failed, machineconfig.ReasonInvalid},
		{"refused once", single(inForce, says(no, later)), patch.InForce, machineconfig.ReasonAsExpected},
		{"just written", single(), patch.Progressing, machineconfig.ReasonRollingOut},
		{"on its way", single(inForce, inPool(updating)), patch.Progressing, machineconfig.ReasonRollingOut},
		{"just written, paused", single(inPool(paused)), patch.Progressing, machineconfig.ReasonUpdatesPaused},
		{"paused", single(inForce, inPool(paused), inPool(updating)), patch.Progressing, machineconfig.ReasonUpdatesPaused},
		{"paused, but there already", single(inForce, inPool(paused)), patch.InForce, machineconfig.ReasonAsExpected},
		{"not at rest", single(inPool(updating)), patch.Progressing, machineconfig.ReasonSettling},
		{"not needed", single(func(in *machineconfig.Inputs) { in.Graceful = machineconfig.GracefulOff }), patch.NotNeeded, machineconfig.ReasonNotNeeded},
	} {
		got := machineconfig.Observe(test.in, machineconfig.Decide(test.in))
		if got.State != test.state || got.Reason != test.reason || got.Message == "" {
			t.Errorf("%s: %s, want %s (%s)", test.name, got, test.state, test.reason)
		}
	}
}
