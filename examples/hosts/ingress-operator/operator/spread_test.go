// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestCrowded(t *testing.T) {
	now := time.Unix(10_000, 0)
	pod := func(name, node string, age, readyFor time.Duration, change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Spec:       corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-readyFor))},
			}},
		}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	going := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"none":                         {nil, nil},
		"one":                          {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour)}, nil},
		"one on each":                  {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour), pod("b", "m", time.Hour, time.Hour)}, nil},
		"the oldest of three":          {[]corev1.Pod{pod("a", "n", time.Minute, time.Minute), pod("b", "n", time.Hour, time.Minute), pod("c", "n", time.Minute, time.Hour)}, []string{"b"}},
		"on both nodes":                {[]corev1.Pod{pod("a", "n", 1, time.Hour), pod("b", "m", 1, time.Hour), pod("c", "n", 2, time.Hour), pod("d", "m", 2, time.Hour)}, []string{"d", "c"}},
		"equally old":                  {[]corev1.Pod{pod("b", "n", time.Hour, time.Hour), pod("a", "n", time.Hour, time.Hour)}, []string{"a"}},
		"the other is not yet counted": {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour), pod("b", "n", time.Minute, 30*time.Second)}, nil},
		"the other just counts":        {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour), pod("b", "n", time.Minute, 31*time.Second)}, []string{"a"}},
		"the other is not ready":       {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour), pod("b", "n", time.Hour, time.Hour, unready)}, nil},
		"the other is on its way out":  {[]corev1.Pod{pod("a", "n", time.Hour, time.Hour), pod("b", "n", time.Hour, time.Hour, going)}, nil},
		"neither has a node":           {[]corev1.Pod{pod("a", "", time.Hour, time.Hour), pod("b", "", time.Hour, time.Hour)}, nil},
	} {
		var got []string
		for _, p := range crowded(test.pods, 30*time.Second, now) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only one node without a load balancer gets ControlPlane, and only with both topologies (U-ING-3).
func TestStockDefaultPlacement(t *testing.T) {
	for _, controlPlane := range []configv1.TopologyMode{sr, ha, external, ""} {
		for _, infrastructure := range []configv1.TopologyMode{sr, ha, ""} {
			for _, platform := range []configv1.PlatformType{configv1.NonePlatformType, configv1.ExternalPlatformType, configv1.AWSPlatformType, configv1.BareMetalPlatformType, ""} {
				for nodes := range 3 {
					object := &configv1.Infrastructure{Status: configv1.InfrastructureStatus{
						ControlPlaneTopology: controlPlane, InfrastructureTopology: infrastructure, PlatformStatus: &configv1.PlatformStatus{Type: platform},
					}}
					want := configv1.DefaultPlacementWorkers
					if fmt.Sprint(controlPlane, infrastructure, nodes) == fmt.Sprint(sr, sr, 1) && (platform == "None" || platform == "External") {
						want = configv1.DefaultPlacementControlPlane
					}
					if got := stockDefaultPlacement(object, nodes); got != want {
						t.Errorf("%q/%q on %q, %d nodes: %s, want %s", controlPlane, infrastructure, platform, nodes, got, want)
					}
				}
			}
		}
	}
	if got := stockDefaultPlacement(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{ControlPlaneTopology: sr, InfrastructureTopology: sr}}, 1); got != configv1.DefaultPlacementWorkers {
		t.Errorf("without a platform: %s", got)
	}
}
