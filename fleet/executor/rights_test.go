// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/patch/golden"
)

func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if err != nil {
			return all
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

const sample = `apiVersion: v1
kind: Namespace
metadata: {name: sno-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, namespace: sno-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one, namespace: sno-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: one, namespace: sno-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
`

// The names, what a dry run of a creation needs, and what the role has; nothing else.
func TestRights(t *testing.T) {
	read := feedback.Modules()[0].Manifest()
	rights, err := executor.Rights(append(objects(t, sample), read))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]rbacv1.PolicyRule{}
	for _, o := range rights {
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			if role.Name == executor.Name {
				got[""] = role.Rules
			}
		case *rbacv1.Role:
			got[role.Namespace] = role.Rules
		}
	}
	rule := func(group, resource, name, verbs string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: strings.Fields(name), Verbs: strings.Split(verbs, ",")}
	}
	const write = "create,delete,get,patch,update"
	want := map[string][]rbacv1.PolicyRule{
		"": {rule("", "namespaces", "sno-system", write), rule("config.openshift.io", "clusteroperators", "machine-approver", "create,get,patch,update")},
		"sno-system": {
			rule("apps", "deployments", "one", write), rule("coordination.k8s.io", "leases", "", "create"),
			rule(rbacv1.GroupName, "rolebindings", "", "create"), rule(rbacv1.GroupName, "rolebindings", "one", write),
			rule(rbacv1.GroupName, "roles", "", "create"), rule(rbacv1.GroupName, "roles", "one", "bind"), rule(rbacv1.GroupName, "roles", "one", write),
		},
	}
	byText := cmp.Transformer("text", func(rules []rbacv1.PolicyRule) map[string]bool {
		all := map[string]bool{}
		for _, r := range rules {
			all[strings.Join(append(append(append([]string{}, r.APIGroups...), r.Resources...), "named", strings.Join(r.ResourceNames, "+"), strings.Join(r.Verbs, ",")), " ")] = true
		}
		return all
	})
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := executor.Rights([]runtime.Object{&rbacv1.Role{}}); err == nil {
		t.Error("an object whose rights cannot be read is ignored")
	}
}

// What a spoke with all modules grants: neither all verbs, nor all resources, nor to grant more than the executor has.
func TestRightsOfAllModules(t *testing.T) {
	workers := int64(0)
	all, err := agent.Objects(configuration.Configuration{Modules: feedback.Names()}, addonv1alpha1.ConfigReferent{}, feedback.Report{Infrastructure: "SingleReplica", Workers: &workers}, false)
	if err != nil {
		t.Fatal(err)
	}
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	addon.Namespace, addon.Name = "east-1", fleet.AddOn
	claim, err := executor.Claim(addon, "01234567-89ab")
	if err != nil {
		t.Fatal(err)
	}
	// What the claim reads needs rights where somebody else grants them.
	all = append(all, objects(t, string(claim.Spec.Workload.Manifests[1].Raw))...)
	work, err := executor.Work(addon, all)
	if err != nil {
		t.Fatal(err)
	}
	if work.Spec.Executor != nil || work.Namespace != "east-1" || work.Labels[addonv1alpha1.AddonLabelKey] == fleet.AddOn || len(work.OwnerReferences) != 1 {
		t.Errorf("got %+v", work.ObjectMeta)
	}
	listed := []string{"# What a fleet's manager grants on a cluster with all modules; go test ./executor -update, in fleet.\n"}
	for _, m := range work.Spec.Workload.Manifests {
		document, err := yaml.JSONToYAML(m.Raw)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, strings.ReplaceAll(string(document), "  creationTimestamp: null\n", ""))
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(m.Raw, &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			for _, word := range append(append(r.Verbs, r.Resources...), r.APIGroups...) {
				if word == "*" || word == "escalate" || word == "impersonate" || word == "bind" && len(r.ResourceNames) == 0 {
					t.Errorf("%s %s in %q: %v", role.Kind, role.Name, role.Namespace, r)
				}
			}
		}
	}
	golden.File(t, "../config/executor/rights.yaml", strings.Join(listed, "---\n"))
}
