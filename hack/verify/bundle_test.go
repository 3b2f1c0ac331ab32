// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestBundleFaults(t *testing.T) {
	const csv = `
spec:
  install:
    spec:
      clusterPermissions:
      - serviceAccountName: a
        rules:
        - {apiGroups: [apps], resources: [deployments], verbs: [get]}
        - {verbs: [list], apiGroups: [""], resources: [nodes]}
      permissions:
      - serviceAccountName: a
        rules:
        - {apiGroups: [""], resources: [events], verbs: [create]}
`
	of := func(rules ...rbacv1.PolicyRule) []rbacv1.ClusterRole { return []rbacv1.ClusterRole{{Rules: rules}} }
	rule := func(group, resource, verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
	}
	deployments, nodes, events, pods := rule("apps", "deployments", "get"), rule("", "nodes", "list"), rule("", "events", "create"), rule("", "pods", "list")
	for name, test := range map[string]struct {
		cluster, own []rbacv1.ClusterRole
		want         string
	}{
		"equal":            {of(deployments, nodes), of(events), ""},
		"lacks a rule":     {of(deployments, nodes, pods), of(events), "clusterPermissions of the bundle lack the rule " + pods.String()},
		"has another rule": {of(deployments), of(events), "no role has, and clusterPermissions of the bundle have, the rule " + nodes.String()},
		"wider":            {of(deployments, nodes, events), nil, "no role has, and permissions of the bundle have, the rule " + events.String()},
		"in the namespace": {of(deployments, nodes), of(events, pods), "permissions of the bundle lack the rule " + pods.String()},
	} {
		faults := strings.Join(bundleFaults([]byte(csv), test.cluster, test.own), "\n")
		if !strings.Contains(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", name, faults, test.want)
		}
	}
}
