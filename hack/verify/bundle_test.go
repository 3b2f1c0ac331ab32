// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
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
	rule := func(texts ...string) rules {
		all := rules{}
		for _, text := range texts {
			all[text] = "role.yaml"
		}
		return all
	}
	const (
		deployments = `{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}`
		nodes       = `{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}`
		events      = `{"apiGroups":[""],"resources":["events"],"verbs":["create"]}`
		pods        = `{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}`
	)
	for name, test := range map[string]struct {
		cluster, operator rules
		want              string
	}{
		"equal":            {rule(deployments, nodes), rule(events), ""},
		"lacks a rule":     {rule(deployments, nodes, pods), rule(events), "clusterPermissions lacks the rule " + pods + " of role.yaml"},
		"has another rule": {rule(deployments), rule(events), "clusterPermissions has the rule " + nodes + ", which no role has"},
		"wider":            {rule(deployments, nodes, events), rule(), "permissions has the rule " + events},
		"in the namespace": {rule(deployments, nodes), rule(events, pods), "permissions lacks the rule " + pods},
	} {
		faults := strings.Join(bundleFaults([]byte(csv), test.cluster, test.operator), "\n")
		if !strings.Contains(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", name, faults, test.want)
		}
	}
}
