// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/internal/fixture"
)

func seconds(total, critical int) machineconfig.GracePeriods {
	return machineconfig.GracePeriods{Total: time.Duration(total) * time.Second, Critical: time.Duration(critical) * time.Second}
}

// TestShutdownGracePeriods shows R-MCO-3: pods have their termination grace periods, within a bound.
func TestShutdownGracePeriods(t *testing.T) {
	unset := fixture.Pod("n", false, 0)
	unset.Spec.TerminationGracePeriodSeconds = nil
	finished := fixture.Pod("n", false, 600)
	finished.Status.Phase = corev1.PodFailed
	lower := fixture.Pod("n", false, 61)
	lower.Spec.Priority = ptr.To[int32](1_999_999_999)
	for _, test := range []struct {
		name  string
		pods  []corev1.Pod
		bound int
		want  machineconfig.GracePeriods
	}{
		{"no pods", nil, 180, seconds(60, 30)},
		{"unset is 30 s", []corev1.Pod{unset}, 180, seconds(60, 30)},
		{"at once", []corev1.Pod{fixture.Pod("n", false, 0), fixture.Pod("n", true, 0)}, 180, seconds(60, 30)},
		{"rounded up", []corev1.Pod{fixture.Pod("n", false, 31), fixture.Pod("n", true, 61)}, 180, seconds(150, 90)},
		{"exactly a step", []corev1.Pod{fixture.Pod("n", false, 60), fixture.Pod("n", true, 30)}, 180, seconds(90, 30)},
		{"the longest of each kind", []corev1.Pod{fixture.Pod("n", false, 10), fixture.Pod("n", false, 90), fixture.Pod("n", true, 20), fixture.Pod("n", true, 35)}, 180, seconds(150, 60)},
		{"almost critical", []corev1.Pod{lower}, 180, seconds(120, 30)},
		{"finished", []corev1.Pod{finished}, 180, seconds(60, 30)},
		{"a router with an hour", []corev1.Pod{fixture.Pod("n", true, 3600)}, 180, seconds(180, 150)},
		{"an application with an hour", []corev1.Pod{fixture.Pod("n", false, 3600), fixture.Pod("n", true, 60)}, 180, seconds(180, 60)},
		{"both with an hour", []corev1.Pod{fixture.Pod("n", false, 3600), fixture.Pod("n", true, 3600)}, 180, seconds(180, 90)},
		{"odd bound", []corev1.Pod{fixture.Pod("n", false, 3600), fixture.Pod("n", true, 3600)}, 181, seconds(181, 90)},
		{"an overflow", []corev1.Pod{fixture.Pod("n", false, 1<<62)}, 180, seconds(180, 30)},
		{"a low bound", nil, 10, seconds(10, 5)},
		{"too low a bound", []corev1.Pod{fixture.Pod("n", false, 30)}, 9, seconds(0, 0)},
		{"off", nil, 0, seconds(0, 0)},
	} {
		if got := machineconfig.ShutdownGracePeriods(test.pods, time.Duration(test.bound)*time.Second); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// The kubelet requires that critical is less than the total, and both are a second or more.
func TestShutdownGracePeriodsAreValid(t *testing.T) {
	for ordinary := int64(0); ordinary < 400; ordinary += 17 {
		for critical := int64(0); critical < 400; critical += 17 {
			for bound := machineconfig.MinShutdownBound; bound < 10*time.Minute; bound += 7 * time.Second {
				got := machineconfig.ShutdownGracePeriods([]corev1.Pod{fixture.Pod("n", false, ordinary), fixture.Pod("n", true, critical)}, bound)
				if got.Total > bound || got.Critical < time.Second || got.Total-got.Critical < time.Second || got.Total%time.Second != 0 || got.Critical%time.Second != 0 {
					t.Fatalf("%d s, critical %d s, bound %s: %+v", ordinary, critical, bound, got)
				}
			}
		}
	}
}
