package machineconfig_test

import (
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

func TestAnnotateTopology(t *testing.T) {
	const says = "machineconfiguration.openshift.io/controlPlaneTopology"
	for _, test := range []struct {
		name string
		mode configv1.TopologyMode
		// live is the annotation, by its managers; empty is none.
		live     string
		managers []string
		change   func(annotations map[string]string)
		windows  bool
		// want is what is written, empty nothing.
		want     string
		releases bool
		reason   string
	}{
		{name: "missing", mode: sr, want: "SingleReplica"},
		{name: "says so already", mode: sr, live: "SingleReplica", managers: []string{stock}},
		{name: "ours", mode: sr, live: "SingleReplica", managers: []string{us}, want: "SingleReplica"},
		{name: "ours and theirs", mode: sr, live: "SingleReplica", managers: []string{us, stock}, want: "SingleReplica"},
		{name: "ours, and the topology changed", mode: ha, live: "SingleReplica", managers: []string{us}, want: "HighlyAvailable"},
		{name: "nobody's", mode: sr, live: "HighlyAvailable", want: "SingleReplica"},
		{name: "the operator's", mode: sr, live: "HighlyAvailable", managers: []string{stock}, reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "a person's", mode: sr, live: "", managers: []string{person}, change: func(a map[string]string) { a[says] = "" }, reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "shared, and the topology changed", mode: ha, live: "SingleReplica", managers: []string{us, person}, releases: true, reason: machineconfig.ReasonFieldOwnedByOther},
		{name: "arbiter", mode: arbiter, want: "HighlyAvailableArbiter"},
		{name: "two", mode: dual, want: "DualReplica"},
		{name: "elsewhere", mode: external, want: "External"},
		{name: "empty", mode: empty, live: "SingleReplica", managers: []string{us}, reason: machineconfig.ReasonNotNeeded},
		{name: "unknown", mode: unknown, live: "SingleReplica", managers: []string{us}, reason: machineconfig.ReasonNotNeeded},
		{name: "no daemon", mode: sr, change: func(a map[string]string) { delete(a, machineconfig.CurrentConfigAnnotation) }, reason: machineconfig.ReasonNotNeeded},
		{name: "Windows", mode: sr, windows: true, reason: machineconfig.ReasonNotNeeded},
		{name: "Windows, and ours", mode: sr, windows: true, live: "SingleReplica", managers: []string{us}, releases: true, reason: machineconfig.ReasonNotNeeded},
		{name: "opted out", mode: sr, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "all" }, reason: machineconfig.ReasonOptedOut},
		{name: "opted out later", mode: sr, live: "SingleReplica", managers: []string{us}, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "machineconfig" },
			releases: true, reason: machineconfig.ReasonOptedOut},
	} {
		t.Run(test.name, func(t *testing.T) {
			annotations := map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"}
			if test.live != "" {
				annotations[says] = test.live
			}
			if test.change != nil {
				test.change(annotations)
			}
			n := annotated(node("m1", "master"), annotations)
			if test.windows {
				n = windows(n)
			}
			for _, manager := range test.managers {
				n.ManagedFields = append(n.ManagedFields, entry(manager, annotationJSON))
			}
			got := machineconfig.AnnotateTopology(machineconfig.Inputs{Cluster: clusterOf(test.mode)}, &n)
			want := ""
			if test.want != "" {
				want = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"m1","uid":"uid-of-node","annotations":{"` + says + `":"` + test.want + `"}}}`
			}
			intent := ""
			if got.Intent != nil {
				text, err := json.Marshal(got.Intent)
				if err != nil {
					t.Fatal(err)
				}
				intent = string(text)
			}
			reason := ""
			if got.Result != nil {
				reason = got.Result.Reason
			}
			if intent != want || got.Release != test.releases || reason != test.reason {
				t.Errorf("%s, releases %t, %v; want %s, %t, %s", intent, got.Release, got.Result, want, test.releases, test.reason)
			}
		})
	}

	n := annotated(node("m1", "master"), map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"})
	operator := &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster", Annotations: map[string]string{patch.OptOutAnnotation: "machineconfig"}}}
	if got := machineconfig.AnnotateTopology(machineconfig.Inputs{Cluster: clusterOf(sr), MachineConfiguration: operator}, &n); got.Intent != nil || got.Result.State != patch.OptedOut {
		t.Errorf("opted out on the operator: %+v", got)
	}
	theirs := annotated(n, map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1", says: "HighlyAvailable"})
	theirs.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, annotationJSON)}
	if got := machineconfig.AnnotateTopology(machineconfig.Inputs{Cluster: clusterOf(sr), ForceConflicts: true}, &theirs); got.Intent == nil || got.Result != nil {
		t.Errorf("forced: %+v", got)
	}
	if got := machineconfig.AnnotateTopology(machineconfig.Inputs{}, &n); got.Intent != nil || got.Release || got.Result.State != patch.Waiting {
		t.Errorf("topology not read: %+v", got)
	}
	n.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, "garbage")}
	if got := machineconfig.AnnotateTopology(machineconfig.Inputs{Cluster: clusterOf(sr)}, &n); got.Intent != nil || got.Result.State != patch.Failed {
		t.Errorf("unreadable managedFields: %+v", got)
	}
}
