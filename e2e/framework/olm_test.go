// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	olmSingle  = "1, 0/1, no rule, on node-role.kubernetes.io/worker, no budget, lease 270 s"
	olmSeveral = "2, 1/1, DoNotSchedule by kubernetes.io/hostname, on node-role.kubernetes.io/worker, budget 1, lease 137 s"
	// olmQuiet is how long the operator must not write to count as being at rest.
	olmQuiet = 3 * time.Second
)

// olmShape returns what depends on the topology. The Lease is written at the next renewal only, so it may be left out.
func olmShape(ctx context.Context, c *embedded.Cluster) (shape, lease string, err error) {
	key := client.ObjectKey{Namespace: framework.OLMNamespace, Name: framework.OLMOperand}
	deployment, budget, held := &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &coordinationv1.Lease{}
	if err := c.Client().Get(ctx, key, deployment); err != nil {
		return "", "", err
	}
	spec := deployment.Spec
	rule, pool, budgeted := "no rule", "any node", "no budget"
	for _, constraint := range spec.Template.Spec.TopologySpreadConstraints {
		rule = string(constraint.WhenUnsatisfiable) + " by " + constraint.TopologyKey
	}
	for label := range spec.Template.Spec.NodeSelector {
		pool = "on " + label
	}
	if err := c.Client().Get(ctx, key, budget); client.IgnoreNotFound(err) != nil {
		return "", "", err
	} else if err == nil {
		budgeted = "budget " + budget.Spec.MaxUnavailable.String()
	}
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: framework.OLMNamespace, Name: framework.OLMLease}, held); err != nil {
		return "", "", err
	}
	rolling := spec.Strategy.RollingUpdate
	shape = fmt.Sprintf("%d, %s/%s, %s, %s, %s", *spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, rule, pool, budgeted)
	return shape, fmt.Sprintf("lease %d s", ptr.Deref(held.Spec.LeaseDurationSeconds, 0)), nil
}

func expectOLM(t *testing.T, c *embedded.Cluster, want string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
		shape, lease, err := olmShape(ctx, c)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		if !strings.Contains(want, "lease") {
			lease = ""
		} else {
			lease = ", " + lease
		}
		last = cmp.Diff(want, shape+lease)
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, last, c.Program(programs.OLMExample.Name).LogTail(4000))
	}
}

func withoutLease(shape string) string {
	before, _, _ := strings.Cut(shape, ", lease")
	return before
}

// olmCaughtUp touches until the operator writes nothing for that: after an outage of the API server a watch may come back
// later than another one, and the operator applies again what it does not see yet, which changes nothing.
func olmCaughtUp(t *testing.T, c *embedded.Cluster, touch func()) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollRouter, waitTimeout, true, func(context.Context) (bool, error) {
		return len(olmWrites(t, c, touch)) == 0, nil
	})
	if err != nil {
		t.Fatalf("the operator writes at each event: %v", err)
	}
}

// olmRests fails the test for writes while nothing changes, other than renewals of the Lease.
func olmRests(t *testing.T, c *embedded.Cluster, act func()) {
	t.Helper()
	for _, write := range olmWrites(t, c, act) {
		t.Errorf("at rest: %s", write)
	}
}

// olmWrites returns the writes in the time after an act, without those of the Lease.
func olmWrites(t *testing.T, c *embedded.Cluster, act func()) (writes []string) {
	t.Helper()
	user := "system:serviceaccount:" + framework.OLMNamespace + ":olm-operator"
	offset, err := c.AuditOffset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	act()
	over := time.NewTimer(olmQuiet)
	defer over.Stop()
	<-over.C
	events, _, err := c.AuditEvents(t.Context(), offset, embedded.AuditFilter{User: user, WritesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if event.ObjectRef.Resource != "leases" {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	return writes
}

// TestOLMOperator runs the operator that OLM installs, with the rights of its ClusterServiceVersion, on one node.
func TestOLMOperator(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := framework.Start(ctx, framework.Config{Scenario: "none-sno"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c := s.Cluster
	program, err := s.RunOLMOperator(ctx)
	if err != nil {
		t.Fatal(err)
	}
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: scenario.ClusterName}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: framework.OLMNamespace, Name: framework.OLMOperand}}
	patch := func(object client.Object, body string) {
		t.Helper()
		if err := c.Client().Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	expectOLM(t, c, olmSingle)
	olmRests(t, c, func() {
		patch(infrastructure, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, time.Now()))
		patch(deployment, `{"metadata":{"annotations":{"example.com/touched":"yes"}}}`)
	})

	t.Log("The topology changes while it runs")
	set := func(mode configv1.TopologyMode) {
		t.Helper()
		if err := s.SetTopology(ctx, mode, mode); err != nil {
			t.Fatal(err)
		}
	}
	set(configv1.HighlyAvailableTopologyMode)
	expectOLM(t, c, withoutLease(olmSeveral))
	olmRests(t, c, func() {})
	set(configv1.SingleReplicaTopologyMode)
	expectOLM(t, c, withoutLease(olmSingle))

	t.Log("Another client changes and deletes its objects")
	patch(deployment, `{"spec":{"replicas":5,"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`)
	expectOLM(t, c, withoutLease(olmSingle))
	if err := c.Client().Delete(ctx, deployment.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	expectOLM(t, c, withoutLease(olmSingle))

	t.Log("The API server restarts, and the topology changes before every watch is back")
	pid := program.PID()
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	set(configv1.HighlyAvailableTopologyMode)
	expectOLM(t, c, withoutLease(olmSeveral))
	if program.PID() != pid {
		t.Error("the operator was restarted")
	}

	touched := 0
	olmCaughtUp(t, c, func() {
		touched++
		patch(deployment, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":"%d times"}}}`, touched))
	})

	t.Log("The Infrastructure is deleted")
	if err := c.Client().Delete(ctx, infrastructure.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	olmRests(t, c, func() { patch(deployment, `{"metadata":{"annotations":{"example.com/touched":"again"}}}`) })
	expectOLM(t, c, withoutLease(olmSeveral))

	t.Log("A new process has no topology, and leaves the Deployment alone")
	if err := program.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	live := &coordinationv1.Lease{}
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: framework.OLMNamespace, Name: framework.OLMLease}, live); err != nil || ptr.Deref(live.Spec.HolderIdentity, "") != "" {
		t.Errorf("the Lease is held by %q after the end of its holder: %v", ptr.Deref(live.Spec.HolderIdentity, ""), err)
	}
	olmRests(t, c, func() {
		if err := program.Start(ctx); err != nil {
			t.Fatal(err)
		}
	})
	infrastructure.ResourceVersion = ""
	if err := c.Client().Create(ctx, infrastructure); err != nil {
		t.Fatal(err)
	}
	set(configv1.SingleReplicaTopologyMode)
	expectOLM(t, c, withoutLease(olmSingle))

	olmReadsNothingElse(t, c)
}

// olmReadsNothingElse checks in the audit log that the operator has requested no other resource of OpenShift.
func olmReadsNothingElse(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	events, _, err := c.AuditEvents(t.Context(), 0, embedded.AuditFilter{User: "system:serviceaccount:" + framework.OLMNamespace + ":olm-operator"})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, event := range events {
		if event.ObjectRef != nil {
			used[event.ObjectRef.Resource+"."+event.ObjectRef.APIGroup] = true
		}
	}
	want := []string{"deployments.apps", "events.", "infrastructures.config.openshift.io", "leases.coordination.k8s.io", "poddisruptionbudgets.policy"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(used))); diff != "" {
		t.Error(diff)
	}
}

// TestOLMOperatorElsewhere runs it on a cluster that has no kind Infrastructure, and again when it has one.
func TestOLMOperatorElsewhere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := c.Client().Get(ctx, client.ObjectKey{Name: "infrastructures.config.openshift.io"}, kind); err != nil {
		t.Fatal(err)
	}
	if err := c.Client().Delete(ctx, kind.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(c.Client().List(ctx, &configv1.InfrastructureList{})), nil
	})
	if err != nil {
		t.Fatalf("the kind Infrastructure is still served: %v", err)
	}
	s := framework.Attach(c, scenario.Scenario{}, t.Output())
	program, err := s.RunOLMOperator(ctx)
	if err != nil {
		t.Fatal(err)
	}
	expectOLM(t, c, "2, 1/1, DoNotSchedule by kubernetes.io/hostname, any node, budget 1, lease 137 s")
	if log := program.LogTail(4000); !strings.Contains(log, "openShift=false") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	kind.SetResourceVersion("")
	if err := c.Client().Create(ctx, kind); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
		return c.Client().List(ctx, &configv1.InfrastructureList{}) == nil, nil
	})
	if err != nil {
		t.Fatalf("the kind Infrastructure is not served: %v", err)
	}
	chosen, err := scenario.Lookup("none-sno")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(chosen.Install(ctx, c), program.Terminate(ctx), program.Start(ctx)); err != nil {
		t.Fatal(err)
	}
	expectOLM(t, c, olmSingle)
}
