// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	waitTimeout = 3 * time.Minute
	pollRouter  = 50 * time.Millisecond
	// outage is the duration of an API server rollout on a single node.
	outage = 60 * time.Second
	// recovery limits the time until the nodes, the router and then the controller have recovered.
	recovery = 5 * time.Minute
)

// TestAPIServerOutage stops the API server during a reconciliation for as long as a rollout takes. The controller must
// neither crash nor lose its Lease, and must complete the change afterwards. Both classes of leader election are
// tested, since their durations differ.
func TestAPIServerOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	for _, name := range []string{"none-sno", "compact"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testOutage(t, name)
		})
	}
}

func testOutage(t *testing.T, name string) {
	ctx := t.Context()
	s, err := framework.Start(ctx, framework.Config{Scenario: name, Hosts: map[framework.Module][]string{framework.Ingress: nil}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	controller, err := s.RunController(ctx, framework.Ingress)
	if err != nil {
		t.Fatal(err)
	}
	condition, err := s.WaitReason(ctx, framework.Ingress, waitTimeout, "AsExpected", "NotNeeded")
	if err != nil {
		t.Fatalf("%v\n%s", err, controller.LogTail(4000))
	}
	pid, before := controller.PID(), lease(t, s)

	// The change and the kill race on purpose.
	changed := map[string]configv1.TopologyMode{
		"AsExpected": configv1.HighlyAvailableTopologyMode, "NotNeeded": configv1.SingleReplicaTopologyMode,
	}[condition.Reason]
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: scenario.ClusterName}}
	body := fmt.Sprintf(`{"status":{"infrastructureTopology":%q}}`, changed)
	if err := s.Cluster.Client().Status().Patch(ctx, infrastructure, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
	if err := s.Cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-controller.Exited():
		t.Fatalf("the controller ended during the outage, exit code %d:\n%s", controller.ExitCode(), controller.LogTail(4000))
	case <-time.After(outage):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	starting, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if err := s.Cluster.StartAPIServer(starting); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"AsExpected": "NotNeeded", "NotNeeded": "AsExpected"}[condition.Reason]
	// Only the final state counts: right after the outage the router and its node are unavailable until the node's Lease
	// is renewed.
	if _, err := s.WaitReason(ctx, framework.Ingress, recovery, want); err != nil {
		t.Errorf("%v\n%s", err, controller.LogTail(4000))
	}
	live, err := s.Object(ctx, framework.Ingress)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := live.Object["spec"].(map[string]any)
	if _, pinned := spec["nodePlacement"]; pinned != (want == "AsExpected") {
		t.Errorf("spec after the outage is %v, pinned should be %v", spec, want == "AsExpected")
	}
	if controller.PID() != pid {
		t.Errorf("the controller did not survive: process %d, was %d\n%s", controller.PID(), pid, controller.LogTail(4000))
	}
	after := lease(t, s)
	if *after.Spec.HolderIdentity != *before.Spec.HolderIdentity || *after.Spec.LeaseTransitions != *before.Spec.LeaseTransitions {
		t.Errorf("the lease was lost: held by %q after %d transitions, was %q after %d",
			*after.Spec.HolderIdentity, *after.Spec.LeaseTransitions, *before.Spec.HolderIdentity, *before.Spec.LeaseTransitions)
	}
}

func lease(t *testing.T, s *framework.ScenarioCluster) coordinationv1.Lease {
	t.Helper()
	leases, err := s.Cluster.Clientset().CoordinationV1().Leases(framework.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) != 1 || leases.Items[0].Spec.HolderIdentity == nil || *leases.Items[0].Spec.HolderIdentity == "" {
		t.Fatalf("want one held lease in %s, got %v", framework.SystemNamespace, leases.Items)
	}
	return leases.Items[0]
}
