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

func newWorks(t *testing.T) (rights, plan *workv1.ManifestWork) {
	t.Helper()
	config := configuration.Configuration{Modules: []string{"auth", "ingress"}, Tool: "r/kubectl-sno:v1", Placement: "topology"}
	rights, plan, err := Works("east-1", config, workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "limited"})
	if err != nil {
		t.Fatal(err)
	}
	return rights, plan
}

// roles returns the rules of the roles in a ManifestWork and the subjects of its bindings.
func roles(work *workv1.ManifestWork) (kinds string, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) {
	for _, m := range work.Spec.Workload.Manifests {
		kinds += " " + m.Object.GetObjectKind().GroupVersionKind().Kind
		switch o := m.Object.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, o.Rules...)
		case *rbacv1.Role:
			rules = append(rules, o.Rules...)
		case *rbacv1.ClusterRoleBinding:
			subjects = append(subjects, o.Subjects...)
		case *rbacv1.RoleBinding:
			subjects = append(subjects, o.Subjects...)
		}
	}
	return kinds, rules, slices.Compact(subjects)
}

// The account of the Pod may read what the controllers read, and nothing else. The executor may write that, with names.
func TestWorks(t *testing.T) {
	rights, plan := newWorks(t)
	kinds, rules, subjects := roles(plan)
	if !strings.HasPrefix(kinds, " Namespace ServiceAccount ClusterRole ") || !strings.HasSuffix(kinds, " Pod") || plan.Namespace != "east-1" {
		t.Errorf("%s in %s", kinds, plan.Namespace)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Name, Name: Name}}, subjects); diff != "" {
		t.Error(diff)
	}
	resources := map[string]bool{}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			resources[resource] = true
		}
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
			t.Errorf("%v", rule)
		}
	}
	if !resources["infrastructures"] || !resources["ingresscontrollers"] || !resources["authentications"] {
		t.Errorf("rights to read %v", resources)
	}
	if got := plan.Spec.Executor.Subject.ServiceAccount; got.Namespace != "ns" || got.Name != "limited" {
		t.Errorf("executor %v", got)
	}

	kinds, rules, subjects = roles(rights)
	if !strings.HasPrefix(kinds, " Namespace ClusterRole ClusterRoleBinding Role RoleBinding") || rights.Spec.Executor != nil {
		t.Errorf("%s, executor %v", kinds, rights.Spec.Executor)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "limited"}}, subjects); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Equal(r.Resources, []string{"pods"}) && slices.Equal(r.ResourceNames, []string{Name}) && slices.Contains(r.Verbs, "create")
	}) {
		t.Error("the executor may not create the Pod")
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
			_, work := newWorks(t)
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
	_, work := newWorks(t)
	if got, final := Result(work); final || got.Refused != "the work agent has not applied the ManifestWork" {
		t.Errorf("got %+v", got)
	}
}
