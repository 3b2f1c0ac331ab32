// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/disturb"
	"github.com/solonode/sno/conformance/report"
)

// routerMinReady is minReadySeconds of today's router, in which nothing changes.
const routerMinReady = 30 * time.Second

// TestStablePeriod: a rollout that waits for minReadySeconds is not stable.
func TestStablePeriod(t *testing.T) {
	deployment := func(minReady, available int32) appsv1.Deployment {
		one := int32(1)
		return appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"},
			Spec:       appsv1.DeploymentSpec{Replicas: &one, MinReadySeconds: minReady},
			Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: available},
		}
	}
	for _, times := range []cluster.Times{cluster.RealTimes(), cluster.SimulatedTimes()} {
		for name, test := range map[string]struct {
			deployment appsv1.Deployment
			want       time.Duration
		}{
			"available":                              {deployment(30, 1), times.Quiet / 3},
			"rolling":                                {deployment(0, 0), times.Stuck},
			"rolling, minReadySeconds of the router": {deployment(30, 0), max(times.Stuck, 2*routerMinReady)},
			"rolling, minReadySeconds of minutes":    {deployment(300, 0), 10 * time.Minute},
		} {
			if got := stablePeriod(&catalogue.State{Deployments: []appsv1.Deployment{test.deployment}}, times); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	}
	if limit := cluster.RealTimes().Stuck; limit < 2*routerMinReady {
		t.Errorf("RealTimes: Stuck %s is less than twice the router's minReadySeconds of %s", limit, routerMinReady)
	}
}

// TestUnsetTimes: a runner refuses limits that mean polling without a pause.
func TestUnsetTimes(t *testing.T) {
	if _, err := New(t.Context(), cluster.Target{Times: cluster.Times{Settle: time.Minute}}, Selection{}); !errors.Is(err, cluster.ErrTimes) {
		t.Error(err)
	}
}

// TestExecute: the results of controls determine the status.
func TestExecute(t *testing.T) {
	holds := func(held func(*catalogue.Input) bool) func(*catalogue.Input) ([]report.Evidence, error) {
		return func(in *catalogue.Input) ([]report.Evidence, error) {
			return []report.Evidence{{Object: "o", Field: "f", Want: "w", Got: "g", Held: held(in)}}, nil
		}
	}
	failing := func(err error) func(*catalogue.Input) ([]report.Evidence, error) {
		return func(*catalogue.Input) ([]report.Evidence, error) { return nil, err }
	}
	always := func(*catalogue.Input) bool { return true }
	noInfrastructure := catalogue.Control{Name: "negative", Change: func(in *catalogue.Input) bool { in.State.Infrastructure = nil; return true }}
	nothing := catalogue.Control{Name: "positive", MustPass: true, Change: always}
	impossible := catalogue.Control{Name: "impossible", Change: func(*catalogue.Input) bool { return false }}
	there := func(in *catalogue.Input) bool { return in.State.Infrastructure != nil }
	for name, test := range map[string]struct {
		check catalogue.Check
		want  report.Status
	}{
		"it can fail":                       {catalogue.Check{Run: holds(there), Controls: []catalogue.Control{noInfrastructure, nothing}}, report.Passed},
		"it cannot fail":                    {catalogue.Check{Run: holds(always), Controls: []catalogue.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"no possible negative control":      {catalogue.Check{Run: holds(there), Controls: []catalogue.Control{impossible, nothing}}, report.Inconclusive},
		"a positive control fails":          {catalogue.Check{Run: holds(there), Controls: []catalogue.Control{noInfrastructure, {MustPass: true, Change: noInfrastructure.Change}}}, report.Inconclusive},
		"it fails":                          {catalogue.Check{Run: holds(func(*catalogue.Input) bool { return false })}, report.Failed},
		"no evidence":                       {catalogue.Check{Run: func(*catalogue.Input) ([]report.Evidence, error) { return nil, nil }}, report.Inconclusive},
		"an error":                          {catalogue.Check{Run: func(*catalogue.Input) ([]report.Evidence, error) { return nil, errors.New("no") }}, report.Failed},
		"a missing permission":              {catalogue.Check{Run: failing(fmt.Errorf("read: %w", catalogue.ErrForbidden))}, report.Inconclusive},
		"the server forbids it":             {catalogue.Check{Run: failing(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil))}, report.Inconclusive},
		"the cluster prevents it":           {catalogue.Check{Run: failing(fmt.Errorf("read: %w", catalogue.ErrInconclusive))}, report.Inconclusive},
		"an act that did not happen":        {catalogue.Check{Run: failing(fmt.Errorf("reboot: %w", catalogue.ErrNotPerformed))}, report.Inconclusive},
		"it does not apply":                 {catalogue.Check{Run: holds(there), NotApplicable: func(*catalogue.State) string { return "why" }}, report.NotApplicable},
		"the target does not allow its act": {catalogue.Check{Run: holds(there), Tier: catalogue.Disruptive, Act: catalogue.StopAPIServer}, report.Skipped},
		"an act that nobody performs":       {catalogue.Check{Run: holds(there), Tier: catalogue.Disruptive, Act: "x"}, report.Failed},
		"its operator is idle":              {catalogue.Check{Module: "auth", Run: holds(there), Controls: []catalogue.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"an operator is idle":               {catalogue.Check{Module: "topology", Run: holds(there), Controls: []catalogue.Control{noInfrastructure, nothing}}, report.Inconclusive},
		"another operator is idle":          {catalogue.Check{Module: "console", Run: holds(there), Controls: []catalogue.Control{noInfrastructure, nothing}}, report.Passed},
	} {
		r := &Runner{state: &catalogue.State{Infrastructure: &configv1.Infrastructure{}}, disturber: &disturb.Disturber{}}
		if strings.Contains(name, "idle") {
			r.target.IdleOperators = func(context.Context) ([]string, error) { return []string{"auth"}, nil }
		}
		result := r.run(t.Context(), test.check)
		if result.Status != test.want || (result.Status != report.Passed && result.Reason == "" && len(result.Evidence) == 0) {
			t.Errorf("%s: %s %q, want %s and a reason", name, result.Status, result.Reason, test.want)
		}
		if r.state.Infrastructure == nil {
			t.Errorf("%s: a control changed what was read", name)
		}
	}
}

// What an interrupted check has found so far is no failure.
func TestExecuteInterrupted(t *testing.T) {
	unheld := []report.Evidence{{Object: "o", Field: "f", Want: "w", Got: "g"}}
	for name, run := range map[string]func(context.Context) ([]report.Evidence, error){
		"error":    func(ctx context.Context) ([]report.Evidence, error) { return nil, ctx.Err() },
		"evidence": func(context.Context) ([]report.Evidence, error) { return unheld, nil },
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		check := catalogue.Check{Run: func(*catalogue.Input) ([]report.Evidence, error) {
			interrupt()
			return run(ctx)
		}}
		result := (&Runner{state: &catalogue.State{}}).run(ctx, check)
		if result.Status != report.Inconclusive || result.Reason != ReasonInterrupted {
			t.Errorf("%s: %s %q", name, result.Status, result.Reason)
		}
	}
}
