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
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
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
		{name: "missing", mode: topologytest.SR, want: "SingleReplica"},
		{name: "equal already", mode: topologytest.SR, live: "SingleReplica", managers: []string{stock}},
		{name: "of this module", mode: topologytest.SR, live: "SingleReplica", managers: []string{fieldOwner}, want: "SingleReplica"},
		{name: "shared", mode: topologytest.SR, live: "SingleReplica", managers: []string{fieldOwner, stock}, want: "SingleReplica"},
		{name: "the topology changed", mode: topologytest.HA, live: "SingleReplica", managers: []string{fieldOwner}, want: "HighlyAvailable"},
		{name: "without an owner", mode: topologytest.SR, live: "HighlyAvailable", want: "SingleReplica"},
		{name: "the operator's", mode: topologytest.SR, live: "HighlyAvailable", managers: []string{stock}, reason: patch.ReasonFieldOwnedByOther},
		{name: "a person's", mode: topologytest.SR, live: "", managers: []string{person}, change: func(a map[string]string) { a[key] = "" }, reason: patch.ReasonFieldOwnedByOther},
		{name: "shared, and the topology changed", mode: topologytest.HA, live: "SingleReplica", managers: []string{fieldOwner, person}, releases: true, reason: patch.ReasonFieldOwnedByOther},
		{name: "arbiter", mode: topologytest.Arbiter, want: "HighlyAvailableArbiter"},
		{name: "dual", mode: topologytest.Dual, want: "DualReplica"},
		{name: "external", mode: topologytest.External, want: "External"},
		{name: "empty", mode: topologytest.Empty, live: "SingleReplica", managers: []string{fieldOwner}, reason: patch.ReasonNotNeeded},
		{name: "unknown", mode: topologytest.Unknown, live: "SingleReplica", managers: []string{fieldOwner}, reason: patch.ReasonNotNeeded},
		{name: "no daemon", mode: topologytest.SR, change: func(a map[string]string) { delete(a, machineconfig.CurrentConfigAnnotation) }, reason: patch.ReasonNotNeeded},
		{name: "Windows", mode: topologytest.SR, windows: true, reason: patch.ReasonNotNeeded},
		{name: "Windows, of this module", mode: topologytest.SR, windows: true, live: "SingleReplica", managers: []string{fieldOwner}, releases: true, reason: patch.ReasonNotNeeded},
		{name: "opted out", mode: topologytest.SR, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "all" }, reason: patch.ReasonOptedOut},
		{name: "opted out later", mode: topologytest.SR, live: "SingleReplica", managers: []string{fieldOwner}, change: func(a map[string]string) { a[patch.OptOutAnnotation] = "machineconfig" },
			releases: true, reason: patch.ReasonOptedOut},
		{name: "opted out on the operator", mode: topologytest.SR, inputs: func(in *decision.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}, reason: patch.ReasonOptedOut},
		{name: "topology not read", inputs: func(in *decision.Inputs) { in.Cluster = nil }, reason: patch.ReasonWaitingForInfrastructure},
		{name: "unreadable managedFields", mode: topologytest.SR, managers: []string{"garbage"}, reason: patch.ReasonInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			annotations := map[string]string{machineconfig.CurrentConfigAnnotation: "rendered-1"}
			if test.live != "" {
				annotations[key] = test.live
			}
			if test.change != nil {
				test.change(annotations)
			}
			n := fixture.Annotated(fixture.Node("m1", "master"), annotations)
			if test.windows {
				n = fixture.Windows(n)
			}
			for _, manager := range test.managers {
				fields := annotationJSON
				if manager == "garbage" {
					fields = manager
				}
				n.ManagedFields = append(n.ManagedFields, entry(manager, fields))
			}
			in := decision.Inputs{Inputs: machineconfig.Inputs{Cluster: fixture.ClusterOf(test.mode)}}
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
