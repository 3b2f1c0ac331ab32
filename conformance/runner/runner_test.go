// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
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
