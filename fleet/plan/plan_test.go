// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/overview"
)

func changes(n int) (all []overview.Change) {
	for i := range n {
		all = append(all, overview.Change{Module: "ingress", Object: fmt.Sprintf("deployment.apps/%x", i*i*7919), Field: ".spec.replicas", Desired: fmt.Sprint(i), Verdict: "set"})
	}
	return all
}

func TestMessage(t *testing.T) {
	message, err := Message(changes(60), nil)
	if err != nil || len(message) > maxMessage {
		t.Fatalf("%d bytes, %v", len(message), err)
	}
	got, err := parse(message)
	if diff := cmp.Diff(changes(60), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if message, err := Message(changes(2000), nil); !errors.Is(err, ErrTooLarge) || message != "" || !strings.Contains(err.Error(), "2000 changes have") {
		t.Errorf("%d bytes, %v", len(message), err)
	}
	for what, message := range map[string]string{
		"it begins with":     "panic: runtime error",
		"illegal base64":     prefix + "?",
		"unexpected EOF":     message[:len(prefix)+40],
		"gzip: invalid":      prefix + "AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"connection refused": failed + "connection refused",
	} {
		if got, err := parse(message); err == nil || got != nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, %v, want %q", got, err, what)
		}
	}
	long, err := Message(nil, errors.New(strings.Repeat("ä", maxMessage)))
	if _, text := parse(long); err != nil || len(long) > maxMessage || text == nil || strings.ContainsRune(text.Error(), '\uFFFD') {
		t.Errorf("%d bytes, %v, %v", len(long), err, text)
	}
}

const rendered = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sno-MODULE-controller}
rules:
- {apiGroups: [config.openshift.io], resources: [infrastructures], verbs: [get, list, watch]}
- {apiGroups: [operator.openshift.io], resources: [ingresscontrollers], verbs: [get, patch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sno-MODULE-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sno-MODULE-controller}
subjects: [{kind: ServiceAccount, name: sno-MODULE-controller, namespace: sno-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sno-MODULE-controller, namespace: sno-system}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sno-MODULE-controller, namespace: sno-system}
`

func newWork(t *testing.T) *workv1.ManifestWork {
	t.Helper()
	config := configuration.Configuration{Modules: []string{"auth", "ingress"}, Tool: "r/kubectl-sno:v1", Placement: "topology"}
	work, err := Work("east-1", config, workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "limited"}, func(module string) (string, error) {
		return strings.ReplaceAll(rendered, "MODULE", module), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// The account of the Pod may read what the controllers read, and nothing else; the executor limits the work agent.
func TestWork(t *testing.T) {
	work := newWork(t)
	var kinds, rights []string
	for _, m := range work.Spec.Workload.Manifests {
		kind := m.Object.GetObjectKind().GroupVersionKind().Kind
		kinds = append(kinds, kind)
		switch o := m.Object.(type) {
		case *rbacv1.ClusterRole:
			for _, rule := range o.Rules {
				rights = append(rights, rule.Resources[0])
				if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
					t.Errorf("%s: %v", o.Name, rule)
				}
			}
		case *rbacv1.ClusterRoleBinding:
			if want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Name, Name: Name}}; cmp.Diff(want, o.Subjects) != "" || !strings.HasPrefix(o.RoleRef.Name, Name) {
				t.Errorf("%v to %v", o.RoleRef, o.Subjects)
			}
		}
	}
	const each = " ClusterRole ClusterRoleBinding"
	if got := strings.Join(kinds, " "); got != "Namespace ServiceAccount"+each+each+" Pod" || work.Namespace != "east-1" {
		t.Errorf("%s in %s", got, work.Namespace)
	}
	if got := strings.Join(rights, " "); got != "infrastructures ingresscontrollers infrastructures ingresscontrollers" {
		t.Errorf("rights to read %s", got)
	}
	if got := work.Spec.Executor.Subject.ServiceAccount; got.Namespace != "ns" || got.Name != "limited" {
		t.Errorf("executor %v", got)
	}
	if _, err := Work("east-1", configuration.Configuration{Modules: []string{"auth"}}, workv1.ManifestWorkSubjectServiceAccount{}, func(string) (string, error) { return "{", nil }); err == nil {
		t.Error("no error")
	}
}

func TestResult(t *testing.T) {
	good, err := Message(changes(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := func(values ...string) (all []workv1.FeedbackValue) {
		for i := 0; i < len(values); i += 2 {
			all = append(all, workv1.FeedbackValue{Name: values[i], Value: workv1.FieldValue{Type: workv1.String, String: &values[i+1]}})
		}
		return all
	}
	one := int64(1)
	for name, c := range map[string]struct {
		values  []workv1.FeedbackValue
		refused string
		final   bool
	}{
		"a plan":      {text("phase", "Succeeded", "message", good), "", true},
		"a failure":   {text("message", failed+"Forbidden"), "Forbidden", true},
		"no result":   {[]workv1.FeedbackValue{{Name: "exitCode", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &one}}}, "ended with exit code 1 and no message", true},
		"too slow":    {text("phase", "Failed", "reason", "DeadlineExceeded"), "failed: DeadlineExceeded", true},
		"no image":    {text("phase", "Pending", "waiting", "ImagePullBackOff"), "is ImagePullBackOff", false},
		"no node":     {text("phase", "Pending", "unscheduled", "0/1 nodes are available"), "is 0/1 nodes are available", false},
		"not there":   {nil, "is not there", false},
		"not applied": {text(), "could not apply Pod sno-plan: not allowed", false},
	} {
		t.Run(name, func(t *testing.T) {
			work := newWork(t)
			m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Resource: "pods", Kind: "Pod", Namespace: Name, Name: Name}}
			m.StatusFeedbacks.Values = c.values
			if name == "not applied" {
				m.Conditions = []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: "not allowed"}}
			}
			work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{m}
			got, final := Result(work)
			if got.Cluster != "east-1" || final != c.final || !strings.Contains(got.Refused, c.refused) || (got.Refused == "") != (got.Changes != nil) {
				t.Errorf("final %t, %+v", final, got)
			}
		})
	}
	if got, final := Result(newWork(t)); final || got.Refused != "the work agent has not applied the ManifestWork" {
		t.Errorf("got %+v", got)
	}
}
