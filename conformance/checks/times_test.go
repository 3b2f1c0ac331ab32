// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTimes: all fields of the predefined times are positive, and all are required.
func TestTimes(t *testing.T) {
	for name, times := range map[string]Times{"RealTimes": RealTimes(), "SimulatedTimes": SimulatedTimes()} {
		fields := reflect.TypeOf(times)
		for i := range fields.NumField() {
			if reflect.ValueOf(times).Field(i).Int() <= 0 {
				t.Errorf("%s: %s is not positive", name, fields.Field(i).Name)
			}
			for _, wrong := range []int64{0, -1} {
				without := times
				reflect.ValueOf(&without).Elem().Field(i).SetInt(wrong)
				if err := without.Validate(); !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), ": "+fields.Field(i).Name+";") {
					t.Errorf("%s with %s %d: %v", name, fields.Field(i).Name, wrong, err)
				}
				if _, err := NewRunner(t.Context(), Target{Times: without}, Selection{}); !errors.Is(err, ErrTimes) {
					t.Errorf("a runner with %s %d: %v", fields.Field(i).Name, wrong, err)
				}
			}
		}
		if err := times.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Times{}).Validate(); err == nil || strings.Count(err.Error(), ", ") != reflect.TypeFor[Times]().NumField()-1 {
		t.Errorf("no times: %v", err)
	}
}

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
	for _, times := range []Times{RealTimes(), SimulatedTimes()} {
		for name, test := range map[string]struct {
			deployment appsv1.Deployment
			want       time.Duration
		}{
			"available":                              {deployment(30, 1), times.Quiet / 3},
			"rolling":                                {deployment(0, 0), times.Stuck},
			"rolling, minReadySeconds of the router": {deployment(30, 0), max(times.Stuck, 2*routerMinReady)},
			"rolling, minReadySeconds of minutes":    {deployment(300, 0), 10 * time.Minute},
		} {
			if got := stablePeriod(&State{Deployments: []appsv1.Deployment{test.deployment}}, times); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	}
	if limit := RealTimes().Stuck; limit < 2*routerMinReady {
		t.Errorf("RealTimes: Stuck %s is less than twice the router's minReadySeconds of %s", limit, routerMinReady)
	}
}
