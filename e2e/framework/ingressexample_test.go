// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// exampleRouter returns what depends on the topology; "none" if the router does not exist.
func exampleRouter(ctx context.Context, kube client.Client, ingressController string) (string, error) {
	key := client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-" + ingressController}
	router, budget := &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}
	if err := kube.Get(ctx, key, router); client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err != nil {
		return "none", nil
	}
	budgeted := "no budget"
	if err := kube.Get(ctx, key, budget); client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err == nil {
		budgeted = "budget " + budget.Spec.MaxUnavailable.String()
	}
	_, pinned := router.Spec.Template.Spec.NodeSelector["node-role.kubernetes.io/master"]
	rolling := router.Spec.Strategy.RollingUpdate
	return fmt.Sprintf("%d, %s/%s, pinned %t, %s", *router.Spec.Replicas, rolling.MaxUnavailable, rolling.MaxSurge, pinned, budgeted), nil
}

// TestIngressExample runs the operator on library-go that vendors ingress: it makes the default IngressController where
// it belongs, follows the topology, repairs its router, removes that of a deleted IngressController, and rests.
func TestIngressExample(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := framework.Start(ctx, framework.Config{Scenario: "none-sno", HostCreatesRouter: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c := s.Cluster
	binary, err := programs.Build(ctx, programs.IngressExample, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	program, err := c.Run(ctx, programs.IngressExample.Name, binary, "--kubeconfig", c.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	expect := func(name, want string) {
		t.Helper()
		last := ""
		err := wait.PollUntilContextTimeout(ctx, pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
			got, err := exampleRouter(ctx, c.Client(), name)
			if err == nil {
				last = cmp.Diff(want, got)
			}
			return err == nil && last == "", nil
		})
		if err != nil {
			t.Fatalf("%s: %v: %s\n%s", name, err, last, program.LogTail(4000))
		}
	}
	const single, several = "1, 25%/0, pinned true, no budget", "2, 25%/0, pinned true, budget 50%"
	set := func(mode configv1.TopologyMode) {
		t.Helper()
		if err := s.SetTopology(ctx, mode, mode); err != nil {
			t.Fatal(err)
		}
	}
	expect("default", single)
	own := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress-operator", Name: "own"}}
	if err := c.Client().Create(ctx, own); err != nil {
		t.Fatal(err)
	}
	expect("own", single)
	set(configv1.HighlyAvailableTopologyMode)
	expect("own", several)
	router := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.RouterNamespace, Name: "router-own"}}
	if err := c.Client().Patch(ctx, router, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))); err != nil {
		t.Fatal(err)
	}
	expect("own", several)
	set(configv1.SingleReplicaTopologyMode)
	expect("own", single)
	if err := c.Client().Delete(ctx, own); err != nil {
		t.Fatal(err)
	}
	expect("own", "none")

	offset, err := c.AuditOffset(ctx)
	if err != nil {
		t.Fatal(err)
	}
	over := time.NewTimer(olmQuiet)
	defer over.Stop()
	<-over.C
	events, _, err := c.AuditEvents(ctx, offset, embedded.AuditFilter{UserAgent: "cluster-ingress-operator", WritesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		t.Errorf("at rest: %s %s", event.Verb, event.RequestURI)
	}
}
