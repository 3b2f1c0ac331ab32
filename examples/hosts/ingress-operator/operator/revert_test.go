// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func placed(label string) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{}
	if label != "" {
		ic.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: ""}}}
	}
	return ic
}

func TestRevertPlacementReverts(t *testing.T) {
	type step struct {
		at    time.Duration
		live  string
		write bool
		after time.Duration
	}
	for _, test := range []struct {
		name  string
		every time.Duration
		first string
		steps []step
	}{
		{"at once", 0, "", []step{{0, "", false, 0}, {1, "master", true, 0}, {2, "master", true, 0}, {3, "", false, 0}}},
		{"what was seen first", 0, "infra", []step{{0, "infra", false, 0}, {1, "", true, 0}, {2, "infra", false, 0}}},
		{"every minute", time.Minute, "", []step{
			{0, "", false, 0}, {time.Second, "master", true, 0}, {2 * time.Second, "master", false, 59 * time.Second}, {61 * time.Second, "master", true, 0},
		}},
	} {
		f := placementReverter{every: test.every}
		start := time.Unix(1_000_000, 0)
		for i, step := range test.steps {
			live := placed(step.live)
			write, after := f.revert(live, start.Add(step.at))
			if (write != nil) != step.write || after != step.after {
				t.Errorf("%s, step %d: write %t after %s, want %t after %s", test.name, i, write != nil, after, step.write, step.after)
			}
			if write != nil {
				if diff := cmp.Diff(placed(test.first), write); diff != "" {
					t.Errorf("%s, step %d (-want +got):\n%s", test.name, i, diff)
				}
			}
			if diff := cmp.Diff(placed(step.live), live); diff != "" {
				t.Errorf("%s, step %d: the live object was changed:\n%s", test.name, i, diff)
			}
		}
	}
}
