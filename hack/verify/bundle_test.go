// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestBundleFaults(t *testing.T) {
	const csv = `spec: {install: {spec: {
  clusterPermissions: [{serviceAccountName: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}, {verbs: [list], resources: [nodes], apiGroups: [""]}]}],
  permissions: [{serviceAccountName: a, rules: [{apiGroups: [""], resources: [events], verbs: [create]}]}]}}}`
	rules := func(groups ...string) (roles []rbacv1.ClusterRole) { // of words: group, resource and verb
		for _, text := range groups {
			words := strings.Split(text, " ")
			roles = append(roles, rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: words[:1], Resources: words[1:2], Verbs: words[2:]}}})
		}
		return roles
	}
	const deployments, nodes, events, pods = "apps deployments get", " nodes list", " events create", " pods list"
	for name, test := range map[string]struct {
		cluster, own []rbacv1.ClusterRole
		want         string
	}{
		"equal":            {rules(nodes, deployments, nodes), rules(events), ""},
		"lacks a rule":     {rules(deployments, nodes, pods), rules(events), "clusterPermissions"},
		"has another rule": {rules(deployments), rules(events), "clusterPermissions"},
		"wider":            {rules(deployments, nodes), nil, "permissions"},
		"in the namespace": {rules(deployments, nodes), rules(events, pods), "permissions"},
	} {
		faults := strings.Join(bundleFaults([]byte(csv), test.cluster, test.own), "\n")
		if !strings.HasPrefix(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", name, faults, test.want)
		}
	}
}
