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
	of := func(rules ...rule) []role { return []role{{Rules: rules}} }
	core := []string{""}
	deployments := rule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}
	nodes := rule{APIGroups: core, Resources: []string{"nodes"}, Verbs: []string{"list"}}
	events := rule{APIGroups: core, Resources: []string{"events"}, Verbs: []string{"create"}}
	pods := rule{APIGroups: core, Resources: []string{"pods"}, Verbs: []string{"list"}}
	const textOfPods = `{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}`
	for name, test := range map[string]struct {
		cluster, operator []role
		want              string
	}{
		"equal":            {of(deployments, nodes), of(events), ""},
		"lacks a rule":     {of(deployments, nodes, pods), of(events), "clusterPermissions lacks the rule " + textOfPods},
		"has another rule": {of(deployments), of(events), "clusterPermissions has the rule "},
		"wider":            {of(deployments, nodes, events), nil, "permissions has the rule "},
		"in the namespace": {of(deployments, nodes), of(events, pods), "permissions lacks the rule " + textOfPods},
	} {
		faults := strings.Join(bundleFaults([]byte(csv), test.cluster, test.operator), "\n")
		if !strings.Contains(faults, test.want) || test.want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", name, faults, test.want)
		}
	}
}
