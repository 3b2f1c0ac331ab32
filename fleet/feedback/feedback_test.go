// SPDX-License-Identifier: Apache-2.0

package feedback_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/internal/workagent"
	ingressdecision "github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
)

var since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// live returns a module's object with the conditions that its controller writes for a result, after those of an operator.
func live(t *testing.T, m feedback.Module, result patch.Result) *unstructured.Unstructured {
	t.Helper()
	conditions := []any{map[string]any{"type": "Available", "status": "True"}} // an operator's may lack a reason
	for _, c := range result.Conditions(m.Prefix, result.Failing()) {
		c.LastTransitionTime = metav1.NewTime(since)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, content)
	}
	object := m.Manifest()
	object.Object["status"] = map[string]any{"conditions": conditions}
	return object
}

func report(t *testing.T, option workv1.ManifestConfigOption, object *unstructured.Unstructured) workv1.ManifestCondition {
	t.Helper()
	condition, err := workagent.Report(option, object)
	if err != nil {
		t.Fatal(err)
	}
	return condition
}

func workOf(conditions ...workv1.ManifestCondition) *workv1.ManifestWork {
	work := &workv1.ManifestWork{}
	work.Status.ResourceStatus.Manifests = conditions
	return work
}

func available(m workv1.ManifestCondition) string {
	for _, c := range m.Conditions {
		if c.Type == workv1.ManifestAvailable {
			return string(c.Status) + " " + c.Message
		}
	}
	return ""
}

// What a controller writes arrives, for each module and each state, and a rollout goes on exactly when it is settled.
func TestEveryStateArrives(t *testing.T) {
	settled := map[patch.State]bool{patch.InForce: true, patch.NotNeeded: true, patch.OptedOut: true}
	reasons := map[patch.State]string{patch.NotNeeded: patch.ReasonNotNeeded, patch.OptedOut: patch.ReasonOptedOut, patch.InForce: patch.ReasonAsExpected}
	for _, m := range feedback.Modules() {
		for _, state := range patch.States() {
			result := patch.Result{State: state, Reason: state.String(), Message: "A sentence"}
			if reason := reasons[state]; reason != "" {
				result.Reason = reason
			}
			reported := report(t, m.ManifestConfig(), live(t, m, result))
			want := feedback.State{
				Module: m.Name, InForce: state == patch.InForce || state == patch.Progressing, Settled: settled[state],
				Failing: result.Failing(), Reason: result.Reason, Message: "A sentence", Since: &since,
			}
			if diff := cmp.Diff([]feedback.State{want}, feedback.Read(workOf(reported)).Modules); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", m.Name, state, diff)
			}
			status := "False"
			if settled[state] {
				status = "True"
			}
			if got, want := available(reported), status+" "+m.Name+": "+result.Reason; got != want {
				t.Errorf("%s %s: Available is %q, want %q", m.Name, state, got, want)
			}
		}
	}
}

// A module's own reasons of NotNeeded are settled too.
func TestOwnReasonsAreSettled(t *testing.T) {
	for _, m := range feedback.Modules() {
		for _, reason := range m.Settled {
			reported := report(t, m.ManifestConfig(), live(t, m, patch.Result{State: patch.NotNeeded, Reason: reason}))
			if got := feedback.Read(workOf(reported)).Module(m.Name); !got.Settled || !strings.HasPrefix(available(reported), "True") {
				t.Errorf("%s with reason %s is not settled: %v", m.Name, reason, got)
			}
		}
	}
	if ingress := feedback.Read(workOf(report(t, feedback.Modules()[4].ManifestConfig(), live(t, feedback.Modules()[4],
		patch.Result{State: patch.NotNeeded, Reason: ingressdecision.ReasonExternalControlPlane})))).Module("ingress"); ingress == nil || !ingress.Settled {
		t.Errorf("ingress with an external control plane: %v", ingress)
	}
}

// Nothing of ours, or nothing at all, on an object is not settled.
func TestNotReported(t *testing.T) {
	for _, m := range feedback.Modules() {
		foreign := m.Manifest()
		foreign.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "AsExpected"}}}
		for name, object := range map[string]*unstructured.Unstructured{"missing": nil, "empty": m.Manifest(), "foreign": foreign} {
			reported := report(t, m.ManifestConfig(), object)
			if diff := cmp.Diff([]feedback.State{{Module: m.Name}}, feedback.Read(workOf(reported)).Modules); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", m.Name, name, diff)
			}
			if got := available(reported); !strings.HasPrefix(got, "False") {
				t.Errorf("%s %s: Available is %q", m.Name, name, got)
			}
		}
	}
}

func TestControllers(t *testing.T) {
	deployment := func(generation, observed, replicas, total, updated, available int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "sno-controllers", "namespace": "sno-system", "generation": generation},
			"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "controller", "image": "registry.example.com/sno:v1"}}}}},
			"status": map[string]any{"observedGeneration": observed, "replicas": total, "updatedReplicas": updated, "availableReplicas": available},
		}}
	}
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"rolled out":          {deployment(2, 2, 1, 1, 1, 1), "True"},
		"not observed":        {deployment(3, 2, 1, 1, 1, 1), "False"},
		"new pod crashes":     {deployment(2, 2, 1, 2, 1, 1), "False"},
		"not available":       {deployment(2, 2, 1, 1, 1, 0), "False"},
		"old pod is replaced": {deployment(2, 2, 1, 1, 0, 1), "False"},
		"scaled to none":      {deployment(2, 2, 0, 0, 0, 0), "True"},
	} {
		t.Run(name, func(t *testing.T) {
			reported := report(t, feedback.Controllers(), c.object)
			if got := available(reported); !strings.HasPrefix(got, c.want) {
				t.Errorf("Available is %q, want %s", got, c.want)
			}
			if diff := cmp.Diff([]string{"registry.example.com/sno:v1"}, feedback.Read(workOf(reported, reported)).Images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopology(t *testing.T) {
	manifests, options := feedback.Topology()
	manifests[0].Object["status"] = map[string]any{"controlPlaneTopology": "SingleReplica", "infrastructureTopology": "HighlyAvailable"}
	manifests[1].Object["status"] = map[string]any{"machineCount": int64(2)}
	refused := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Kind: "IngressController", Name: "default"},
		Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: "no matches for kind"}},
	}
	got := feedback.Read(workOf(report(t, options[0], manifests[0]), report(t, options[1], manifests[1])), workOf(refused))
	workers := int64(2)
	want := feedback.Report{
		ControlPlane: "SingleReplica", Infrastructure: "HighlyAvailable", Workers: &workers,
		NotApplied: []string{"IngressController default: no matches for kind"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := got.Module("ingress"); got != nil {
		t.Errorf("state of a module that is not read: %v", got)
	}
}
