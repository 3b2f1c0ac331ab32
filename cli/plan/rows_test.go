// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
)

const before = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 1, annotations: {sno.solonode.github.io/console-replaced: x}, managedFields: [
  {apiVersion: apps/v1, manager: person, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}, "f:paused": {}}}},
  {apiVersion: apps/v1, manager: sno.solonode.github.io/console, operation: Apply, fieldsType: FieldsV1,
   fieldsV1: {"f:spec": {"f:minReadySeconds": {}, "f:template": {"f:nodeSelector": {}}}}}]},
spec: {replicas: 2, paused: true, minReadySeconds: 3, revisionHistoryLimit: 5, affinity: {}, template: {nodeSelector: {"a.b/c": ""}}},
status: {replicas: 2}}`

const after = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 2, managedFields: [
  {apiVersion: apps/v1, manager: sno.solonode.github.io/console, operation: Apply, fieldsType: FieldsV1,
   fieldsV1: {"f:spec": {"f:minReadySeconds": {}, "f:replicas": {}, "f:revisionHistoryLimit": {}, "f:template": {"f:nodeSelector": {}}}}}]},
spec: {replicas: 1, minReadySeconds: 3, revisionHistoryLimit: 5, affinity: {pod: x}, template: {nodeSelector: {"a.b/c": ""}}},
status: {replicas: 1}}`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestFields(t *testing.T) {
	const name = "deployment.apps/d"
	want := []Row{
		{Object: name, Field: ".spec.affinity.pod", Live: "-", Desired: `"x"`, Owner: "-", Verdict: Set},
		{Object: name, Field: ".spec.minReadySeconds", Live: "3", Desired: "3", Owner: "sno.solonode.github.io/console", Verdict: InForce},
		{Object: name, Field: ".spec.paused", Live: "true", Desired: "-", Owner: "person", Verdict: Remove},
		{Object: name, Field: ".spec.replicas", Live: "2", Desired: "1", Owner: "person", Verdict: Set},
		{Object: name, Field: ".spec.revisionHistoryLimit", Live: "5", Desired: "5", Owner: "-", Verdict: Own},
		{Object: name, Field: `.spec.template.nodeSelector["a.b/c"]`, Live: `""`, Desired: `""`, Owner: "sno.solonode.github.io/console", Verdict: InForce},
	}
	if diff := cmp.Diff(want, fields(object(t, before), object(t, after), "console")); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	bare := object(t, before)
	bare.SetManagedFields(nil)
	for _, row := range fields(bare, object(t, after), "console") {
		if row.Owner != "unknown" {
			t.Errorf("without managedFields %s is owned by %q", row.Field, row.Owner)
		}
	}
}

func TestWholeObjects(t *testing.T) {
	for verdict, w := range map[Verdict]rehearsal.Write{Create: {After: object(t, after)}, Delete: {Before: object(t, before)}} {
		rows := written(w, "console")
		if len(rows) != 1 || rows[0].Verdict != verdict || rows[0].Field != "-" {
			t.Errorf("%s: %v", verdict, rows)
		}
	}
}

func TestBlocked(t *testing.T) {
	forced := []rehearsal.Write{{Before: object(t, before), After: object(t, after)}}
	known := Module{Module: "console", Rows: []Row{{Object: "deployment.apps/d", Field: ".spec.affinity.pod", Verdict: Set}}}
	got := map[string]string{}
	for _, row := range blocked(known, forced) {
		got[row.Field] = string(row.Verdict) + ": " + row.Why
	}
	const why = "blocked: Owned by person and not changed; remove it there or use --force-conflicts"
	if diff := cmp.Diff(map[string]string{".spec.paused": why, ".spec.replicas": why}, got); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

func TestWhy(t *testing.T) {
	would := Module{Message: "Dry run: the router would move", Result: patch.Result{State: patch.WouldChange}}
	pinned := Module{Message: "The router is pinned"}
	got := []string{why(Set, would, true), why(Set, would, false), why(InForce, pinned, true), why(InForce, would, true)}
	want := []string{"The router would move", "Required by the topology", "The router is pinned", "Owned by this module"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if got := stateText(patch.NotNeeded); got != "not needed" {
		t.Errorf("NotNeeded is %q", got)
	}
}
