package etcdguard_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
)

func TestChecksInOrder(t *testing.T) {
	var names []string
	for _, check := range etcdguard.Checks() {
		names = append(names, check.Name)
	}
	want := []string{"Valid", "TopologyKnown", "Readable", "OptedOut", "EtcdHere", "OperatorGuards", "NoOperatorOwns", "OverridesFree",
		"ClusterVersionThere", "NodesKnown", "Adoptable", "FieldsFree"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a person reads: what is the case, whose it is, and what to do about it.
func TestChecksSay(t *testing.T) {
	annotated := func(value string, to func(*etcdguard.Inputs) *metav1.ObjectMeta) func(*etcdguard.Inputs) {
		return func(in *etcdguard.Inputs) { to(in).Annotations = map[string]string{patch.OptOutAnnotation: value} }
	}
	for name, test := range map[string]struct {
		in   etcdguard.Inputs
		says []string
	}{
		"nothing to say":               {of(ha, 5), nil},
		"nothing to say on one node":   {of(sr, 1), nil},
		"opted out on the guard":       {of(ha, 5, annotated("etcdguard", func(in *etcdguard.Inputs) *metav1.ObjectMeta { return &in.Deployment.ObjectMeta })), []string{patch.OptOutAnnotation, "remove it"}},
		"opted out on the budget":      {of(ha, 5, annotated("ingress, etcdguard", func(in *etcdguard.Inputs) *metav1.ObjectMeta { return &in.Budget.ObjectMeta })), []string{"keeps this module away"}},
		"opted out on the cluster":     {of(ha, 5, annotated("all", func(in *etcdguard.Inputs) *metav1.ObjectMeta { return &in.ClusterVersion.ObjectMeta })), []string{"keeps this module away"}},
		"opted out on etcd":            {of(ha, 5, conditions(), annotated("true", func(in *etcdguard.Inputs) *metav1.ObjectMeta { return &in.Etcd.ObjectMeta })), []string{"keeps this module away"}},
		"another module opted out":     {of(ha, 5, annotated("ingress", func(in *etcdguard.Inputs) *metav1.ObjectMeta { return &in.Deployment.ObjectMeta })), nil},
		"External":                     {of(external, 0), []string{"External"}},
		"an unknown topology":          {of(unknown, 3, operatorGuard), []string{"by itself", "Quantum"}},
		"an earlier operator":          {of(ha, 5, left), []string{`"cluster-etcd-operator"`, "--force-conflicts"}},
		"an earlier operator, too few": {of(ha, 5, left), []string{"and has another number of replicas than the cluster needs and has a PodDisruptionBudget that lets another number"}},
		"an earlier operator, right in number and without a budget": {of(ha, 3, left, func(in *etcdguard.Inputs) { in.Budget = nil }),
			[]string{`written by "cluster-etcd-operator" and has no PodDisruptionBudget; see whether that operator runs`}},
		"an earlier operator, right in number and for other pods": {of(ha, 3, left, otherSelector),
			[]string{`"cluster-etcd-operator" and has a PodDisruptionBudget whose selector does not select its pods; see`}},
		"a person's replicas": {of(ha, 5, scaled), []string{".spec.replicas", `"oc"`, "--force-conflicts"}},
		"a person's budget": {of(ha, 5, func(in *etcdguard.Inputs) {
			in.Budget.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, maxUnavailableJSON)}
		}), []string{".spec.maxUnavailable", `"oc"`}},
		"a person's minAvailable": {of(ha, 5, minAvailable("1"), func(in *etcdguard.Inputs) {
			in.Budget.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, `{"f:spec":{"f:minAvailable":{}}}`)}
		}), []string{".spec.minAvailable", `"oc"`}},
		"an object of before managedFields": {of(ha, 5, func(in *etcdguard.Inputs) { in.Budget.ManagedFields = nil }), []string{".spec.maxUnavailable", `"before-first-apply"`}},
		"an entry against":                  {of(ha, 5, against), []string{".spec.overrides", `"oc"`, "also with --force-conflicts", "remove the entry"}},
		"an entry against, nobody's": {of(ha, 5, func(in *etcdguard.Inputs) {
			in.ClusterVersion = version(guardEntry("PodDisruptionBudget", false))
		}), []string{"is owned and stays"}},
		"a list that is one value": {of(ha, 5, func(in *etcdguard.Inputs) {
			in.ClusterVersion = version()
			in.ClusterVersion.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, `{"f:spec":{"f:overrides":{}}}`)}
		}), []string{"one value", "by hand"}},
		"the same with the entries in it": {of(ha, 5, func(in *etcdguard.Inputs) {
			in.ClusterVersion = version(bothEntries(true)...)
			in.ClusterVersion.ManagedFields = []metav1.ManagedFieldsEntry{entry(person, `{"f:spec":{"f:overrides":{}}}`)}
		}), nil},
		"no ClusterVersion":         {of(ha, 5, func(in *etcdguard.Inputs) { in.ClusterVersion = nil }), []string{"no ClusterVersion"}},
		"no nodes read":             {of(ha, 5, func(in *etcdguard.Inputs) { in.Nodes = nil }), []string{"nothing is changed"}},
		"no nodes read on one node": {of(sr, 1, func(in *etcdguard.Inputs) { in.Nodes = nil }), nil},
		"another container":         {of(ha, 5, func(in *etcdguard.Inputs) { in.Deployment.Spec.Template.Spec.Containers[0].Name = "x" }), []string{`"guard"`, "delete it"}},
		"another selector":          {of(ha, 5, func(in *etcdguard.Inputs) { in.Deployment.Spec.Selector.MatchLabels["k8s-app"] = "x" }), []string{"k8s-app=etcd-quorum-guard"}},
		"no selector":               {of(ha, 5, func(in *etcdguard.Inputs) { in.Deployment.Spec.Selector = nil }), []string{"k8s-app=etcd-quorum-guard"}},
	} {
		t.Run(name, func(t *testing.T) {
			result := etcdguard.Checks().Run(test.in)
			switch {
			case result == nil && test.says != nil:
				t.Fatal("it has nothing to say")
			case result != nil && test.says == nil:
				t.Fatalf("it says %s", result)
			}
			for _, says := range test.says {
				if !strings.Contains(result.Message, says) {
					t.Errorf("%q does not say %q", result.Message, says)
				}
			}
		})
	}
}

func TestCertificateMissingSaysWhich(t *testing.T) {
	for _, test := range []struct {
		secret, bundle etcdguard.Presence
		says           string
	}{
		{etcdguard.Absent, etcdguard.Present, "without the Secret etcd-client in"},
		{etcdguard.Present, etcdguard.Absent, "without the ConfigMap etcd-ca-bundle in"},
		{etcdguard.Unknown, etcdguard.Absent, "without the Secret etcd-client and the ConfigMap etcd-ca-bundle in the namespace openshift-etcd"},
	} {
		d := etcdguard.Decide(of(ha, 5, func(in *etcdguard.Inputs) { in.ClientSecret, in.CABundle = test.secret, test.bundle }))
		if d.Action != etcdguard.Nothing || d.Result.Reason != etcdguard.ReasonCertificateMissing || !strings.Contains(d.Result.Message, test.says) {
			t.Errorf("%s %v; want %q", d.Action, d.Result, test.says)
		}
	}
}
