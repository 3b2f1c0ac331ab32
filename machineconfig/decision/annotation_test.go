// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

func TestAnnotateTopology(t *testing.T) {
	const key = "machineconfiguration.openshift.io/controlPlaneTopology"
	for _, test := range []struct {
		name string
		mode configv1.TopologyMode
		// live is the annotation, of the managers; empty is none. want is what is written.
		live     string
		managers []string
		change   func(annotations map[string]string)
		inputs   func(*decision.Inputs)
		windows  bool
		want     string
		releases bool
		reason   string
	}{
		{name: "missing", mode: sr, want: "SingleReplica"},
		{name: "equal already", mode: sr, live: "SingleReplica", managers: []string{stock}},
		{name: "of this module", mode: sr, live: "SingleReplica", managers: []string{fieldOwner}, want: "SingleReplica"},
		{name: "shared", mode: sr, live: "SingleReplica", managers: []string{fieldOwner, stock}, want: "SingleReplica"},
		{name: "the topology changed", mode: ha, live: "SingleReplica", managers: []string{fieldOwner}, want: "HighlyAvailable"},
		{name: "without an owner", mode: sr, live: "HighlyAvailable", want: "SingleReplica"},
		{name: "the operator's", mode: sr, live: "HighlyAvailable", managers: []string{stock}, reason: patch.ReasonFieldOwnedByOther},
		{name: "a person's", mode: sr, live: "", managers: []string{person}, change: func(a map[string]string) { a[key] = "" }, reason: patch.ReasonFieldOwnedByOther},
		{name: "shared, and the topology changed", mode: ha, live: "SingleReplica", managers: []string{fieldOwner, person}, releases: true, reason: patch.ReasonFieldOwnedByOther},
		{name: "arbiter", mode: arbiter, want: "HighlyAvailableArbiter"},
		{name: "dual", mode: dual, want: "DualReplica"},
		{name: "external", mode: external, want: "External"},
		{name: "empty", mode: empty, live: "SingleReplica", managers: []string{fieldOwner}, reason: patch.ReasonNotNeeded},
		{name: "unknown", mode: unknown, live: "SingleReplica", managers: []string{fieldOwner}, reason: patch.ReasonNotNeeded},
		{name: "no daemon", mode: sr, change: func(a map[string]string) { delete(a, machineconfig.CurrentConfigAnnotation) }, reason: patch.ReasonNotNeeded},
		{name: "Windows", mode: sr, windows: true, reason: patch.ReasonNotNeeded},
		{name: "Windows, of this module", mode: sr, windows: true, live: "SingleReplica", managers: []string{fieldOwner}, releases: true, reason: patch.ReasonNotNeeded},
		{name: "opted out", mode: sr, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "all" }, reason: patch.ReasonOptedOut},
		{name: "opted out later", mode: sr, live: "SingleReplica", managers: []string{fieldOwner}, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "machineconfig" },
			releases: true, reason: patch.ReasonOptedOut},
		{name: "opted out on the operator", mode: sr, inputs: func(in *decision.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}, reason: patch.ReasonOptedOut},
		{name: "topology not read", inputs: func(in *decision.Inputs) { in.Cluster = nil }, reason: patch.ReasonWaitingForInfrastructure},
		{name: "unreadable managedFields", mode: sr, managers: []string{"garbage"}, reason: patch.ReasonInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			annotations := map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"}
			if test.live != "" {
				annotations[key] = test.live
			}
			if test.change != nil {
				test.change(annotations)
			}
			n := annotated(node("m1", "master"), annotations)
			if test.windows {
				n = windows(n)
			}
			for _, manager := range test.managers {
				fields := annotationJSON
				if manager == "garbage" {
					fields = manager
				}
				n.ManagedFields = append(n.ManagedFields, entry(manager, fields))
			}
			in := decision.Inputs{Inputs: machineconfig.Inputs{Cluster: clusterOf(test.mode)}}
			if test.inputs != nil {
				test.inputs(&in)
			}
			got := decision.AnnotateTopology(in, &n)
			var want any
			if test.want != "" {
				want = corev1ac.Node("m1").WithUID("uid-of-node").WithAnnotations(map[string]string{key: test.want})
			}
			if diff := cmp.Diff(want, any(got.Intent)); diff != "" {
				t.Errorf("intent (-want +got):\n%s", diff)
			}
			if got.Release != test.releases || reasonOf(got.Result) != test.reason {
				t.Errorf("releases %t, %v; want %t, %s", got.Release, got.Result, test.releases, test.reason)
			}
		})
	}
}
