// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/solonode/sno/patch/patchtest"
)

func TestFlags(t *testing.T) {
	suite.TestFlags(t, map[string]patchtest.Invocation{
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
