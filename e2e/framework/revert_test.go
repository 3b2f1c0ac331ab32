// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/embedded"
)

// TestHostThatReverts runs the controller with an operator that reverts every placement at once. The controller must
// stop, report it, and stay below one write a minute.
func TestHostThatReverts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute; make proof runs it")
	}
	t.Parallel()
	ctx := t.Context()
	s, err := framework.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Ingress: {"--stock", "--revert-placement"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	started := time.Now()
	controller, err := s.RunController(ctx, framework.Ingress)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WaitReason(ctx, framework.Ingress, waitTimeout, "Reverted"); err != nil {
		t.Fatalf("%v\n%s", err, controller.LogTail(4000))
	}
	select {
	case <-controller.Exited():
		t.Fatalf("the controller ended:\n%s", controller.LogTail(4000))
	case <-time.After(outage - time.Since(started)):
	}
	events, _, err := s.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: framework.Ingress.User(), Resource: "ingresscontrollers", WritesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, event := range events {
		if !strings.Contains(event.RequestURI, "/status") {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	if len(writes) != 1 {
		t.Errorf("%d writes to the IngressController in its first minute, want the one that was reverted:\n%s", len(writes), strings.Join(writes, "\n"))
	}
	if condition, err := s.Condition(ctx, framework.Ingress); err != nil || condition.Reason != "Reverted" {
		t.Errorf("condition is %s (%v), want it to stay Reverted", condition, err)
	}
}
