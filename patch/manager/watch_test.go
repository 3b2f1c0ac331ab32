package manager

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solonode/sno/patch/status"
)

// A dry run writes nothing at all: no conditions, and no events about what did not happen.
func TestReporter(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options             Options
		conditions, onEvent bool
	}{
		"operator": {Options{StatusTarget: StatusOperator}, true, true},
		"none":     {Options{StatusTarget: StatusNone}, false, true},
		"dry run":  {Options{StatusTarget: StatusOperator, DryRun: true}, false, false},
	} {
		got := Environment{Options: test.options}.Reporter(mgr, "sample", "Sample", "configmap/one")
		if _, writes := got.Sink.(*status.OperatorConditions); writes != test.conditions {
			t.Errorf("%s: shows conditions: %v, want %v", name, writes, test.conditions)
		}
		if (got.Events != nil) != test.onEvent {
			t.Errorf("%s: sends events: %v, want %v", name, got.Events != nil, test.onEvent)
		}
	}
}

func TestSooner(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {1, 2, 1}, {2, 1, 1}} {
		if got := sooner(test[0], test[1]); got != test[2] {
			t.Errorf("sooner(%d, %d) is %d, want %d", test[0], test[1], got, test[2])
		}
	}
}
