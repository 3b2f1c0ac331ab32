// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"testing"

	"github.com/solonode/sno/testcluster/modules"
)

func TestFlags(t *testing.T) {
	suite.TestFlags(t, map[string]modules.Invocation{
		"unknown placement": {Args: []string{"--placement=both"}, Code: 2, Output: []string{"--placement", "both", "topology", "defaultPlacement"}},
	})
}

func TestManifests(t *testing.T) {
	const namespace, group, resource = "openshift-ingress-operator", "operator.openshift.io", "ingresscontrollers"
	suite.TestManifests(t, [][6]string{{namespace, group, resource, "", "default", "patch"}}, [][6]string{
		{namespace, group, resource, "", "internal", "patch"},
		{namespace, group, resource, "", "default", "update"},
		{namespace, group, resource, "", "default", "create"},
		{namespace, group, resource, "", "default", "delete"},
		{namespace, "", "secrets", "", "", "get"},
		{"openshift-ingress", "apps", "deployments", "", "router-default", "patch"},
		{"openshift-ingress", "", "pods", "", "", "list"},
		{"", "", "nodes", "", "", "list"},
	})
}

// The account may change nothing but what the module patches.
func TestPolicies(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", two)
	c.PatchStatus(stock, controllerObject, `{"status":{"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	c.TestPolicies(
		modules.Change{Object: controllerObject, Patch: `{"spec":{"replicas":3}}`, Permissible: true},
		modules.Change{Object: controllerObject, Patch: `{"spec":{"domain":"attacker.example.com"}}`},
		modules.Change{Object: controllerObject, Patch: `{"spec":{"replicas":3,"defaultCertificate":{"name":"attacker"}}}`},
		modules.Change{Object: controllerObject, Status: true, Patch: `{"status":{"conditions":[{"type":"Available","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
		modules.Change{Object: controllerObject, Status: true, Patch: `{"status":{"domain":"attacker.example.com"}}`},
	)
}
