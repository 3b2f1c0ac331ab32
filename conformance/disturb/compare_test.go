// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/catalogue"
)

func TestDifferences(t *testing.T) {
	before := &catalogue.State{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	after := before.DeepCopy()
	if left := differences(before, after); len(left) > 0 {
		t.Errorf("no change, but %v", left)
	}
	after.Nodes[0].Spec.Unschedulable = true
	after.Nodes[1].Name = "c"
	got := strings.Join(differences(before, after), "; ")
	if want := "Node a: was unschedulable false, is unschedulable true; Node b: deleted; Node c: created"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The annotation of a rollout and other template annotations are compared; for operators' own ones, whose values
	// change, only the keys.
	template := func(annotations map[string]string) *catalogue.State {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"}}
		d.Spec.Template.Annotations = annotations
		return &catalogue.State{Deployments: []appsv1.Deployment{d}}
	}
	for name, test := range map[string]struct {
		before, after map[string]string
		left          int
	}{
		"a rollout's":              {nil, map[string]string{rolloutAnnotation: "now"}, 1},
		"a later rollout's":        {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "now"}, 1},
		"reverted":                 {map[string]string{rolloutAnnotation: "then"}, map[string]string{rolloutAnnotation: "then"}, 0},
		"a person's, removed":      {map[string]string{"example.com/reviewed": "yes"}, nil, 1},
		"another one":              {nil, map[string]string{"example.com/reviewed": "yes"}, 1},
		"an operator's, changed":   {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "2"}, 0},
		"an operator's, unchanged": {map[string]string{"operator.openshift.io/rvs-hash": "1"}, map[string]string{"operator.openshift.io/rvs-hash": "1"}, 0},
	} {
		if left := differences(template(test.before), template(test.after)); len(left) != test.left {
			t.Errorf("annotation %s: %v, want %d", name, left, test.left)
		}
	}
}
