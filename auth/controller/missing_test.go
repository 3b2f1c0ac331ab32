package controller

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
)

// Without the Authentication the Deployments are shaped all the same, and there is nobody to show conditions to.
func TestNoAuthentication(t *testing.T) {
	c := install(t, sr, needs, 1)
	if err := c.admin.Delete(t.Context(), authenticationOf("")); err != nil {
		t.Fatal(err)
	}
	l := c.looker()
	l.want(l.settle(), patch.Waiting, "WaitingForObject")
	c.shaped(serverKey, 1, "0", "1", false)
	target, _, err := l.patcher.look(t.Context())
	if target != nil || err != nil {
		t.Errorf("a target for conditions: %v, %v", target, err)
	}
	l.atRest()
	c.installAuthentication(`{"managementState":"Managed"}`)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.wantOverrides(set)
}

// Without a ClusterVersion the release is not known: no override, and the message says so. The rest works.
func TestNoClusterVersion(t *testing.T) {
	c := install(t, sr, needs, 1)
	if err := c.admin.Delete(t.Context(), object("config.openshift.io/v1", "ClusterVersion", "", "version")); err != nil {
		t.Fatal(err)
	}
	l := c.looker()
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.wantOverrides("absent")
	read, err := l.patcher.gather(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result := l.patcher.steps(t.Context(), read)[0]
	if l.want(result, patch.NotNeeded, "NotNeeded"); !strings.Contains(result.Message, "is not known, so none is set") {
		t.Error(result.Message)
	}
}

// Where the number of pods follows the nodes, nothing is shaped before there is one, and nothing is scaled down when all are
// gone.
func TestNoNodes(t *testing.T) {
	c := install(t, ha, needsNot, 0)
	l := c.looker()
	c.server.NoWrites(t, ourUser, func() { l.want(l.look(), patch.Waiting, "WaitingForNodes") })
	c.flip(sr)
	l.want(l.settle(), patch.InForce, "AsExpected") // one pod, whatever the number of nodes is
	c.flip(ha)
	c.installNodes(3)
	l.want(l.settle(), patch.InForce, "AsExpected")
	if err := c.admin.DeleteAllOf(t.Context(), object("v1", "Node", "", "")); err != nil {
		t.Fatal(err)
	}
	l.want(l.settle(), patch.Waiting, "WaitingForNodes")
	c.shaped(serverKey, 3, "2", "3", true)
	l.atRest()
}

// Without an Infrastructure nothing is set and nothing is let go of.
func TestNoInfrastructure(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.looker().settle()
	if err := c.admin.Delete(t.Context(), object("config.openshift.io/v1", "Infrastructure", "", "cluster")); err != nil {
		t.Fatal(err)
	}
	l := c.looker()
	c.server.NoWrites(t, ourUser, func() { l.want(l.look(), patch.Waiting, "WaitingForInfrastructure") })
	c.wantOverrides(set)
}

// Without the Deployments the override is set all the same; each is shaped when it comes.
func TestNoDeployments(t *testing.T) {
	c := install(t, sr, needs, 1)
	for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
		if err := c.admin.Delete(t.Context(), object("apps/v1", "Deployment", k.Namespace, k.Name)); err != nil {
			t.Fatal(err)
		}
	}
	l := c.looker()
	for range 2 {
		result := l.look()
		if l.want(result, patch.Waiting, "WaitingForObject"); !strings.Contains(result.Message, "There is no Deployment openshift-authentication/oauth-openshift") {
			t.Error(result.Message)
		}
	}
	c.wantOverrides(set)
	c.apply(deploymentOf(serverKey), "gitops")
	if result := l.look(); !strings.Contains(result.Message, "There is no Deployment openshift-oauth-apiserver/apiserver") {
		t.Error(result.Message)
	}
	c.shaped(serverKey, 1, "0", "1", false)
	c.apply(deploymentOf(apiServerKey), "gitops")
	l.want(l.settle(), patch.InForce, "AsExpected")
}
