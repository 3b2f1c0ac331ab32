// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/metrics"
)

var _ apply.Recorder = (*metrics.Metrics)(nil)

func newMetrics(t *testing.T) (*metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

func TestNames(t *testing.T) {
	m, registry := newMetrics(t)
	m.RecordApply("ingress", apply.Applied)
	m.RecordApply("ingress", apply.Unchanged)
	m.RecordApply("ingress", apply.Unchanged)
	m.RecordConflict("ingress", "oc")
	m.RecordResult("ingress", "default", patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if count, err := testutil.GatherAndCount(registry, metrics.BuildInfo); err != nil || count != 1 {
		t.Errorf("%d series of %s, %v", count, metrics.BuildInfo, err)
	}
	want := `
# HELP sno_apply_total Outcomes of reconciling a patched object, by kind; only applied and released are writes.
# TYPE sno_apply_total counter
sno_apply_total{module="ingress",result="applied"} 1
sno_apply_total{module="ingress",result="unchanged"} 2
# HELP sno_conflicts_total Fields of the intent that another field manager owned.
# TYPE sno_conflicts_total counter
sno_conflicts_total{field_manager="oc",module="ingress"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metrics.ApplyTotal, metrics.Conflicts); err != nil {
		t.Error(err)
	}
	if _, err := metrics.New(registry); err == nil {
		t.Error("registered twice without an error")
	}
}

// A reason is reported while an object of the module has it.
func TestResults(t *testing.T) {
	result := func(state patch.State, reason string) patch.Result { return patch.Result{State: state, Reason: reason} }
	steps := []struct {
		object  string
		result  patch.Result
		inForce map[string]string // by object
		blocked []string
	}{
		{"a", result(patch.Waiting, "WaitingForObject"), map[string]string{"a": "0"}, []string{"WaitingForObject"}},
		{"a", result(patch.Waiting, "WaitingForObject"), map[string]string{"a": "0"}, []string{"WaitingForObject"}},
		{"a", result(patch.Blocked, "FieldOwnedByOther"), map[string]string{"a": "0"}, []string{"FieldOwnedByOther"}},
		{"b", result(patch.Blocked, "FieldOwnedByOther"), map[string]string{"a": "0", "b": "0"}, []string{"FieldOwnedByOther"}},
		{"a", result(patch.Progressing, "RollingOut"), map[string]string{"a": "1", "b": "0"}, []string{"FieldOwnedByOther"}},
		{"a", result(patch.InForce, "AsExpected"), map[string]string{"a": "1", "b": "0"}, []string{"FieldOwnedByOther"}},
		{"b", result(patch.InForce, "FieldOwnedByOther"), map[string]string{"a": "1", "b": "1"}, nil},
		{"b", result(patch.Reverted, "Reverted"), map[string]string{"a": "1", "b": "0"}, []string{"Reverted"}},
		{"b", result(patch.NotNeeded, "NotNeeded"), map[string]string{"a": "1", "b": "0"}, nil},
		{"b", result(patch.OptedOut, "OptedOut"), map[string]string{"a": "1", "b": "0"}, nil},
		{"b", result(patch.Failed, "Forbidden"), map[string]string{"a": "1", "b": "0"}, []string{"Forbidden"}},
	}
	m, registry := newMetrics(t)
	m.RecordResult("console", "c", result(patch.Blocked, "FieldOwnedByOther"))
	for i, step := range steps {
		m.RecordResult("ingress", step.object, step.result)
		want := "# HELP sno_blocked 1 for the reason that keeps a patch of the module from being in force.\n# TYPE sno_blocked gauge\n" +
			"sno_blocked{module=\"console\",reason=\"FieldOwnedByOther\"} 1\n"
		for _, reason := range step.blocked {
			want += `sno_blocked{module="ingress",reason="` + reason + "\"} 1\n"
		}
		want += "# HELP sno_patch_in_force 1 when the module's patch is on the object, 0 when it is not.\n# TYPE sno_patch_in_force gauge\n" +
			"sno_patch_in_force{module=\"console\",object=\"c\"} 0\n"
		for object, value := range step.inForce {
			want += `sno_patch_in_force{module="ingress",object="` + object + `"} ` + value + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metrics.Blocked, metrics.PatchInForce); err != nil {
			t.Errorf("step %d, %s of %s: %v", i, step.result.State, step.object, err)
		}
	}
}
