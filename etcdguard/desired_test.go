package etcdguard_test

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard"
)

// step says what a decision is, and what it would write, in a few words.
func said(t testing.TB, d etcdguard.Decision) string {
	t.Helper()
	words := []string{string(d.Action)}
	if d.Action == etcdguard.Nothing {
		words[0] = "Nothing"
	}
	if d.Create {
		words = append(words, "create")
	}
	if d.ClusterVersion != nil {
		words = append(words, fmt.Sprintf("%d entries", len(d.ClusterVersion.Spec.Overrides)))
	}
	if d.HandTo != "" && d.HandTo != cvo {
		words = append(words, "to "+d.HandTo)
	}
	if d.Deployment != nil {
		words = append(words, fmt.Sprintf("%d replicas of %s", *d.Deployment.Spec.Replicas, *d.Deployment.Spec.Template.Spec.Containers[0].Image))
	}
	if d.Budget != nil {
		words = append(words, "maxUnavailable "+d.Budget.Spec.MaxUnavailable.String())
	}
	if len(d.Unset) > 0 {
		words = append(words, "without "+strings.Join(d.Unset, " "))
	}
	if len(d.Annotations) > 0 {
		words = append(words, "without "+strings.Join(d.Annotations, " "))
	}
	if d.Result != nil {
		words = append(words, "("+d.Result.State.String()+" "+d.Result.Reason+")")
	}
	return strings.Join(words, ", ")
}

func TestDecide(t *testing.T) {
	seen := func(in *etcdguard.Inputs) { in.ClusterVersion = claimed() }
	image := func(in *etcdguard.Inputs) { in.Image = "other" }
	noGuard := func(in *etcdguard.Inputs) { in.Deployment, in.Budget = nil, nil }
	ours := func(mode configv1.TopologyMode, n int) func(*etcdguard.Inputs) {
		return func(in *etcdguard.Inputs) { in.Deployment, in.Budget = ourGuard(t, mode, n), ourBudget(t, mode, n) }
	}
	for name, test := range map[string]struct {
		in   etcdguard.Inputs
		want string
	}{
		// One node.
		"one node, the release's guard":     {of(sr, 1), "Claim, 2 entries, (Progressing TakingOver)"},
		"one node, claimed and not seen":    {of(sr, 1, func(in *etcdguard.Inputs) { in.ClusterVersion = unobserved(claimed()) }), "Nothing, (Progressing TakingOver)"},
		"one node, claimed and seen":        {of(sr, 1, seen), "DeleteBudget, (Progressing Removing)"},
		"one node, the budget is gone":      {of(sr, 1, seen, func(in *etcdguard.Inputs) { in.Budget = nil }), "DeleteDeployment, (Progressing Removing)"},
		"one node, the Deployment is gone":  {of(sr, 1, seen, func(in *etcdguard.Inputs) { in.Deployment = nil }), "DeleteBudget, (Progressing Removing)"},
		"one node, both are gone":           {of(sr, 1, seen, noGuard), "Nothing, (InForce AsExpected)"},
		"one node, there never was one":     {of(sr, 1, noGuard), "Nothing, (NotNeeded NotNeeded)"},
		"one node, no ClusterVersion, ours": {of(sr, 1, ours(ha, 3), func(in *etcdguard.Inputs) { in.ClusterVersion = nil }), "DeleteBudget, (Progressing Removing)"},
		"one node, members not read":        {of(sr, 1, seen, func(in *etcdguard.Inputs) { in.Members = nil }), "Nothing, (Waiting WaitingForMembers)"},
		"one node, the bootstrap member":    {of(sr, 1, seen, func(in *etcdguard.Inputs) { in.Members = membersOf(2, 2) }), "Nothing, (Waiting WaitingForMembers)"},
		"one node, a learner besides": {of(sr, 1, seen, func(in *etcdguard.Inputs) {
			in.Members[0].Learner = true
			in.Members = append(in.Members, etcdguard.Member{ID: 9, Healthy: true})
		}), "DeleteBudget, (Progressing Removing)"},
		"one node, left by an operator":        {of(sr, 1, left), "DeleteBudget, (Progressing Removing)"},
		"one node, claimed on a newer release": {of(sr, 1, seen, noGuard, conditions("GuardControllerDegraded")), "Unclaim, (Progressing Removing)"},

		// A guard of the right strength that nobody has to touch.
		"three nodes, the release's guard":   {of(ha, 3), "Nothing, (NotNeeded NotNeeded)"},
		"unknown topology, the same":         {of(unknown, 3), "Nothing, (NotNeeded NotNeeded)"},
		"one of three nodes there yet":       {of(ha, 1), "Nothing, (NotNeeded NotNeeded)"},
		"no nodes yet":                       {of(ha, 0), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes without roles":          {of(ha, 0, func(in *etcdguard.Inputs) { in.Nodes = []corev1.Node{worker("a"), {}, worker("c")} }), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, the operator's own":    {of(ha, 3, noGuard, operatorGuard), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, an earlier operator's": {of(ha, 3, left), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, minAvailable 2 of 3":   {of(ha, 3, minAvailable("2")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, a budget of 33%":       {of(ha, 3, maxUnavailable("33%")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, learners besides": {of(ha, 3, func(in *etcdguard.Inputs) {
			in.Members = append(in.Members, etcdguard.Member{ID: 8, Healthy: true, Learner: true}, etcdguard.Member{ID: 9, Healthy: true, Learner: true})
		}), "Nothing, (NotNeeded NotNeeded)"},
		"External": {of(external, 0), "Nothing, (NotNeeded NotNeeded)"},

		// What the release makes is right, and what is there of it is not: the cluster-version-operator mends it by itself.
		"three nodes, no budget":                {of(ha, 3, func(in *etcdguard.Inputs) { in.Budget = nil }), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, the budget is going":      {of(ha, 3, func(in *etcdguard.Inputs) { in.Budget.DeletionTimestamp = &metav1.Time{} }), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, another selector":         {of(ha, 3, otherSelector), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no Deployment":            {of(ha, 3, image, func(in *etcdguard.Inputs) { in.Deployment = nil }), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, not seen":      {of(ha, 3, func(in *etcdguard.Inputs) { in.Budget, in.ClusterVersion = nil, unobserved(version()) }), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, others' claim": {of(ha, 3, theirs, func(in *etcdguard.Inputs) { in.Budget = nil }), "ApplyBudget, create, maxUnavailable 1, (Progressing RollingOut)"},
		"three nodes, no budget, our claim":     {of(ha, 3, seen, func(in *etcdguard.Inputs) { in.Budget = nil }), "ApplyBudget, create, maxUnavailable 1, (Progressing RollingOut)"},
		"three nodes, nobody's guard, no budget": {of(ha, 3, func(in *etcdguard.Inputs) {
			in.Budget, in.Deployment.ManagedFields = nil, []metav1.ManagedFieldsEntry{entry(etcdguard.Released, staticGuardJSON)}
		}), "Claim, 2 entries, (Progressing TakingOver)"},
		"three nodes, no guard": {of(ha, 3, image, noGuard), "Claim, 2 entries, (Progressing TakingOver)"},
		"five nodes, no budget": {of(ha, 5, func(in *etcdguard.Inputs) { in.Budget = nil }), "Claim, 2 entries, (Progressing TakingOver)"},
		"arbiter, no budget":    {of(arbiter, 3, func(in *etcdguard.Inputs) { in.Budget = nil }), "Claim, 2 entries, (Progressing TakingOver)"},

		// A guard that does not fit.
		"five nodes, the release's guard":        {of(ha, 5), "Claim, 2 entries, (Progressing TakingOver)"},
		"five nodes, one entry":                  {of(ha, 5, func(in *etcdguard.Inputs) { in.ClusterVersion = version(guardEntry("Deployment", true)) }), "Claim, 1 entries, (Progressing TakingOver)"},
		"five nodes, claimed and not seen":       {of(ha, 5, func(in *etcdguard.Inputs) { in.ClusterVersion = unobserved(claimed()) }), "Nothing, (Progressing TakingOver)"},
		"five nodes, settled, not seen":          {of(ha, 5, ours(ha, 5), func(in *etcdguard.Inputs) { in.ClusterVersion = unobserved(claimed()) }), "Nothing"},
		"five nodes, seen":                       {of(ha, 5, seen), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},
		"five nodes, another image":              {of(ha, 5, seen, image), "ApplyDeployment, 5 replicas of other, (Progressing RollingOut)"},
		"five nodes, the Deployment is ours":     {of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Deployment = ourGuard(t, ha, 5) }), "ApplyBudget, maxUnavailable 2, (Progressing RollingOut)"},
		"five nodes, settled":                    {of(ha, 5, seen, ours(ha, 5)), "Nothing"},
		"five nodes, no ClusterVersion, settled": {of(ha, 5, ours(ha, 5), func(in *etcdguard.Inputs) { in.ClusterVersion = nil }), "Nothing"},
		"five nodes, tags of the release":        {of(ha, 5, seen, ours(ha, 5), tags), "TidyDeployment, without include.release.openshift.io/x release.openshift.io/y, (Progressing RollingOut)"},
		"five nodes, minAvailable 2":             {of(ha, 5, seen, ours(ha, 5), minAvailable("2")), "ApplyBudget, maxUnavailable 2, without .spec.minAvailable, (Progressing RollingOut)"},
		"five nodes, always evict":               {of(ha, 5, seen, ours(ha, 5), alwaysAllow), "ApplyBudget, maxUnavailable 2, (Progressing RollingOut)"},
		"five nodes, the entries taken off":      {of(ha, 5, ours(ha, 5)), "Claim, 2 entries, (Progressing TakingOver)"},
		"five nodes, no guard, no image":         {of(ha, 5, noGuard), "Nothing, (Waiting WaitingForObject)"},
		"five nodes, no guard, no image, ours":   {of(ha, 5, noGuard, seen), "Unclaim, (Waiting WaitingForObject)"},
		"five nodes, no guard":                   {of(ha, 5, noGuard, seen, image), "ApplyBudget, create, maxUnavailable 2, (Progressing RollingOut)"},
		"five nodes, only a budget":              {of(ha, 5, seen, image, ours(ha, 5), func(in *etcdguard.Inputs) { in.Deployment = nil }), "ApplyDeployment, create, 5 replicas of other, (Progressing RollingOut)"},
		"five nodes, no budget, three guards":    {of(ha, 5, seen, ours(ha, 3), func(in *etcdguard.Inputs) { in.Budget = nil }), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},
		"five nodes, no budget, five guards":     {of(ha, 5, seen, ours(ha, 5), func(in *etcdguard.Inputs) { in.Budget = nil }), "ApplyBudget, create, maxUnavailable 2, (Progressing RollingOut)"},
		"five nodes, no certificate":             {of(ha, 5, func(in *etcdguard.Inputs) { in.ClientSecret = etcdguard.Absent }), "Nothing, (Waiting CertificateMissing)"},
		"five nodes, certificate not read":       {of(ha, 5, func(in *etcdguard.Inputs) { in.CABundle = etcdguard.Unknown }), "Nothing, (Waiting CertificateMissing)"},
		"five nodes, the guard is being deleted": {of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Deployment.DeletionTimestamp = &metav1.Time{} }), "Nothing, (Waiting WaitingForObject)"},
		"arbiter, the release's guard":           {of(arbiter, 3), "Claim, 2 entries, (Progressing TakingOver)"},
		"arbiter, seen":                          {of(arbiter, 3, seen), "ApplyBudget, maxUnavailable 1, (Progressing RollingOut)"},
		"arbiter, the budget is ours":            {of(arbiter, 3, seen, func(in *etcdguard.Inputs) { in.Budget = ourBudget(t, arbiter, 3) }), "ApplyDeployment, 3 replicas of cli, without .spec.template.spec.nodeSelector, (Progressing RollingOut)"},
		"two nodes, the release's guard":         {of(dual, 2), "Claim, 2 entries, (Progressing TakingOver)"},
		"two nodes, seen":                        {of(dual, 2, seen), "ApplyBudget, maxUnavailable 1, (Progressing RollingOut)"},
		"two nodes, the budget is ours":          {of(dual, 2, seen, func(in *etcdguard.Inputs) { in.Budget = ourBudget(t, dual, 2) }), "ApplyDeployment, 2 replicas of cli, (Progressing RollingOut)"},

		// The count follows the cluster, and nothing is loosened while etcd is not whole.
		"grown from three":                 {of(ha, 5, seen, ours(ha, 3)), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},
		"grown, members not read":          {of(ha, 5, seen, ours(ha, 3), func(in *etcdguard.Inputs) { in.Members = nil }), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},
		"shrunk to four":                   {of(ha, 4, seen, ours(ha, 5)), "ApplyBudget, maxUnavailable 1, (Progressing RollingOut)"},
		"shrunk to four, the budget is":    {of(ha, 4, seen, func(in *etcdguard.Inputs) { in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 4) }), "ApplyDeployment, 4 replicas of cli, (Progressing RollingOut)"},
		"shrunk, the members are not":      {of(ha, 3, seen, ours(ha, 5), func(in *etcdguard.Inputs) { in.Members = membersOf(5, 3) }), "Nothing"},
		"shrunk, members not read":         {of(ha, 3, seen, ours(ha, 5), func(in *etcdguard.Inputs) { in.Members = nil }), "Nothing, (Progressing MembersUnhealthy)"},
		"shrunk, one of three is down":     {of(ha, 3, seen, ours(ha, 5), func(in *etcdguard.Inputs) { in.Members = membersOf(3, 2) }), "Nothing, (Progressing MembersUnhealthy)"},
		"two nodes, one of two is down":    {of(dual, 2, seen, func(in *etcdguard.Inputs) { in.Members = membersOf(2, 1) }), "Nothing, (Progressing MembersUnhealthy)"},
		"stricter than need be":            {of(ha, 3, seen, ours(ha, 3), maxUnavailable("0")), "ApplyBudget, maxUnavailable 1, (Progressing RollingOut)"},
		"the same, one of three is down":   {of(ha, 3, seen, ours(ha, 3), maxUnavailable("0"), func(in *etcdguard.Inputs) { in.Members = membersOf(3, 2) }), "Nothing, (Progressing MembersUnhealthy)"},
		"looser, one of three is down":     {of(ha, 3, seen, ours(ha, 3), maxUnavailable("2"), func(in *etcdguard.Inputs) { in.Members = membersOf(3, 2) }), "ApplyBudget, maxUnavailable 1, (Progressing RollingOut)"},
		"from one node to three, no image": {of(ha, 1, seen, noGuard), "Unclaim, (Waiting WaitingForObject)"},
		"from one node to three":           {of(ha, 1, seen, noGuard, image), "ApplyBudget, create, maxUnavailable 1, (Progressing RollingOut)"},

		// Letting go.
		"three again, settled":           {of(ha, 3, seen, ours(ha, 3)), "DisownDeployment, (Progressing GivingBack)"},
		"three again, half given back":   {of(ha, 3, seen, func(in *etcdguard.Inputs) { in.Budget = ourBudget(t, ha, 3) }), "DisownBudget, (Progressing GivingBack)"},
		"three again, given back":        {of(ha, 3, seen), "Unclaim, (Progressing GivingBack)"},
		"three again, entries of others": {of(ha, 3, ours(ha, 3), theirs), "Nothing"},
		"opted out":                      {of(ha, 5, seen, ours(ha, 5), optOut), "DisownDeployment, (OptedOut OptedOut)"},
		"opted out, no ClusterVersion": {of(ha, 5, ours(ha, 5), optOut, func(in *etcdguard.Inputs) {
			in.Deployment.Annotations, in.ClusterVersion = in.ClusterVersion.Annotations, nil
		}), "DisownDeployment, to sno.solonode.github.io/etcdguard-released, (OptedOut OptedOut)"},
		"opted out, nothing ours":  {of(ha, 5, optOut), "Nothing, (OptedOut OptedOut)"},
		"opted out on one node":    {of(sr, 1, seen, optOut), "Unclaim, (OptedOut OptedOut)"},
		"External, something left": {of(external, 0, seen), "Unclaim, (NotNeeded NotNeeded)"},
		"the operator guards now":  {of(ha, 5, seen, ours(ha, 5), operatorGuard), "DeleteBudget, (NotNeeded NotNeeded)"},
		"the operator is about to": {of(ha, 5, seen, ours(ha, 5), conditions("GuardControllerDegraded")), "Nothing, (Progressing GivingBack)"},
		"the operator guards, of a generation before": {of(ha, 5, seen, ours(ha, 5), operatorGuard, func(in *etcdguard.Inputs) {
			in.PodsBudget.Generation, in.PodsBudget.Status.ObservedGeneration = 2, 1
		}), "Nothing, (Progressing GivingBack)"},
		"the operator guards, claimed": {of(ha, 5, seen, noGuard, operatorGuard), "Unclaim, (NotNeeded NotNeeded)"},

		// Other people.
		"a person scaled it":                {of(ha, 5, seen, ours(ha, 5), scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"a person scaled it, by force":      {of(ha, 5, seen, ours(ha, 5), scaled, force), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},
		"a person scaled it, on one node":   {of(sr, 1, seen, scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"by force, on one node":             {of(sr, 1, seen, scaled, force), "DeleteBudget, (Progressing Removing)"},
		"an earlier operator's, five nodes": {of(ha, 5, left), "Nothing, (Blocked FieldOwnedByOther)"},
		"an entry against":                  {of(ha, 5, against), "Nothing, (Blocked FieldOwnedByOther)"},
		"an entry against, by force":        {of(ha, 5, against, force), "Nothing, (Blocked FieldOwnedByOther)"},
		"an entry against, ours":            {of(ha, 5, against, ours(ha, 5)), "DisownDeployment, (Blocked FieldOwnedByOther)"},
		"entries of others":                 {of(ha, 5, theirs), "ApplyDeployment, 5 replicas of cli, (Progressing RollingOut)"},

		// What cannot be read.
		"no topology":            {of(sr, 1, seen, func(in *etcdguard.Inputs) { in.Cluster = nil }), "Nothing, (Waiting WaitingForInfrastructure)"},
		"no nodes read":          {of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Nodes = nil }), "Nothing, (Waiting WaitingForNodes)"},
		"no ClusterVersion":      {of(sr, 1, func(in *etcdguard.Inputs) { in.ClusterVersion = nil }), "Nothing, (Waiting WaitingForObject)"},
		"damaged managedFields":  {of(sr, 1, seen, damaged), "Nothing, (Failed Invalid)"},
		"some other Deployment":  {of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Deployment.Spec.Template.Spec.Containers[0].Name = "x" }), "Nothing, (Failed Invalid)"},
		"a member that is twice": {of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Members[1].ID = 1 }), "Nothing, (Failed Invalid)"},
	} {
		t.Run(name, func(t *testing.T) {
			before := text(t, test.in)
			if got := said(t, etcdguard.Decide(test.in)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if text(t, test.in) != before {
				t.Error("the inputs were changed")
			}
			if one, two := text(t, etcdguard.Decide(test.in)), text(t, etcdguard.Decide(test.in)); one != two {
				t.Errorf("%s\nand then %s", one, two)
			}
		})
	}
}

// left makes the guard one that an earlier etcd operator wrote.
func left(in *etcdguard.Inputs) {
	in.Deployment.ManagedFields = append(in.Deployment.ManagedFields, entry(stock, replicasJSON))
	in.Budget.ManagedFields = append(in.Budget.ManagedFields, entry(stock, maxUnavailableJSON))
}

func operatorGuard(in *etcdguard.Inputs) {
	in.PodsBudget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
	in.PodsBudget.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 4, CurrentHealthy: 5}
}

func conditions(types ...string) func(*etcdguard.Inputs) {
	return func(in *etcdguard.Inputs) {
		in.Etcd = &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		for _, condition := range types {
			in.Etcd.Status.Conditions = append(in.Etcd.Status.Conditions, operatorv1.OperatorCondition{Type: condition, Status: operatorv1.ConditionFalse})
		}
	}
}

func minAvailable(n string) func(*etcdguard.Inputs) {
	return func(in *etcdguard.Inputs) {
		in.Budget.Spec.MaxUnavailable, in.Budget.Spec.MinAvailable = nil, ptr.To(intstr.Parse(n))
	}
}

func maxUnavailable(n string) func(*etcdguard.Inputs) {
	return func(in *etcdguard.Inputs) { in.Budget.Spec.MaxUnavailable = ptr.To(intstr.Parse(n)) }
}

func alwaysAllow(in *etcdguard.Inputs) {
	in.Budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func otherSelector(in *etcdguard.Inputs) { in.Budget.Spec.Selector.MatchLabels["k8s-app"] = "x" }

func tags(in *etcdguard.Inputs) {
	in.Deployment.Annotations = map[string]string{"include.release.openshift.io/x": "true", "release.openshift.io/y": "", "norelease.openshift.io/z": "", "a": "b"}
}

func scaled(in *etcdguard.Inputs) {
	in.Deployment.Spec.Replicas = ptr.To[int32](1)
	in.Deployment.ManagedFields = append(in.Deployment.ManagedFields, entry(person, replicasJSON))
}

func force(in *etcdguard.Inputs) { in.ForceConflicts = true }

func theirs(in *etcdguard.Inputs) {
	in.ClusterVersion = signed(version(bothEntries(true)...), person, entriesJSON("Deployment", "PodDisruptionBudget"))
}

func against(in *etcdguard.Inputs) {
	in.ClusterVersion = signed(version(guardEntry("Deployment", false)), person, entriesJSON("Deployment"))
}

func optOut(in *etcdguard.Inputs) {
	in.ClusterVersion.Annotations = map[string]string{"sno.solonode.github.io/opt-out": "etcdguard"}
}

func damaged(in *etcdguard.Inputs) {
	in.Budget.ManagedFields[0].FieldsV1 = &metav1.FieldsV1{Raw: []byte(`{"f:spec":1}`)}
}

// What is written, by hand and not by the code under test.
func TestIntents(t *testing.T) {
	claim := etcdguard.Decide(of(ha, 5)).ClusterVersion
	wantClaim := `{"kind":"ClusterVersion","apiVersion":"config.openshift.io/v1","metadata":{"name":"version"},"spec":{"overrides":[` +
		`{"kind":"Deployment","group":"apps","namespace":"openshift-etcd","name":"etcd-quorum-guard","unmanaged":true},` +
		`{"kind":"PodDisruptionBudget","group":"policy","namespace":"openshift-etcd","name":"etcd-quorum-guard","unmanaged":true}]}}`
	if diff := cmp.Diff(wantClaim, text(t, claim)); diff != "" {
		t.Errorf("the entries (-want +got):\n%s", diff)
	}
	seen := func(in *etcdguard.Inputs) { in.ClusterVersion = claimed() }
	budget := etcdguard.Decide(of(ha, 5, seen, func(in *etcdguard.Inputs) { in.Deployment = ourGuard(t, ha, 5) })).Budget
	wantBudget := `{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"etcd-quorum-guard","namespace":"openshift-etcd"},` +
		`"spec":{"selector":{"matchLabels":{"k8s-app":"etcd-quorum-guard"}},"maxUnavailable":2,"unhealthyPodEvictionPolicy":"IfHealthyBudget"}}`
	if diff := cmp.Diff(wantBudget, text(t, budget)); diff != "" {
		t.Errorf("the budget (-want +got):\n%s", diff)
	}
	// The Deployment says exactly what host.go says.
	decision := etcdguard.Decide(of(arbiter, 5, seen))
	if decision.Deployment == nil || fmt.Sprint(decision.TakeFrom) != "["+cvo+" "+us+"-released]" {
		t.Fatalf("%+v", decision)
	}
	var got, want map[string]any
	if err := json.Unmarshal([]byte(text(t, decision.Deployment)), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text(t, no(etcdguard.Deployment(hostOf(arbiter, 5))))), &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "status")
	prune(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Deployment (-want +got):\n%s", diff)
	}
}

// prune takes away what older API types write although it is not there.
func prune(object map[string]any) {
	for key, value := range object {
		if inside, ok := value.(map[string]any); ok {
			prune(inside)
		}
		if value == nil {
			delete(object, key)
		}
	}
}

// Whatever could not be read, in whatever state of a cluster that needs its guard (U-ETC-8): nothing is deleted,
// nothing is made looser. And on one node nothing is deleted without the topology and the members.
func TestFailedReads(t *testing.T) {
	seen := func(in *etcdguard.Inputs) { in.ClusterVersion = claimed() }
	ours := func(in *etcdguard.Inputs) { in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 5) }
	lose := []func(*etcdguard.Inputs){
		func(in *etcdguard.Inputs) { in.Cluster = nil },
		func(in *etcdguard.Inputs) { in.Nodes = nil },
		func(in *etcdguard.Inputs) { in.Members = nil },
		func(in *etcdguard.Inputs) { in.ClusterVersion = nil },
		func(in *etcdguard.Inputs) { in.Etcd = nil },
		func(in *etcdguard.Inputs) { in.Deployment = nil },
		func(in *etcdguard.Inputs) { in.Budget = nil },
		func(in *etcdguard.Inputs) { in.PodsBudget = nil },
		func(in *etcdguard.Inputs) { in.ClientSecret, in.CABundle = etcdguard.Unknown, etcdguard.Unknown },
	}
	sizes := []int{1, 5}
	if testing.Short() {
		sizes = sizes[1:]
	}
	for _, mode := range allModes {
		for _, n := range sizes {
			for i, start := range [][]func(*etcdguard.Inputs){{}, {seen}, {seen, ours}, {ours}, {left}, {seen, ours, force}} {
				for lost := range 1 << len(lose) {
					if bits.OnesCount(uint(lost)) > 2 {
						continue
					}
					in := of(mode, n, start...)
					replicas, maxUnavailable := *in.Deployment.Spec.Replicas, in.Budget.Spec.MaxUnavailable.IntValue()
					for i, f := range lose {
						if lost&(1<<i) != 0 {
							f(&in)
						}
					}
					d := etcdguard.Decide(in)
					at := fmt.Sprintf("%q, %d nodes, start %d, lost %09b: %s", mode, n, i, lost, said(t, d))
					deletes := d.Action == etcdguard.DeleteBudget || d.Action == etcdguard.DeleteDeployment
					if deletes && (mode != sr || in.Cluster == nil || in.Members == nil) {
						t.Errorf("deletes: %s", at)
					}
					if in.Cluster != nil && in.Nodes != nil && in.Members != nil {
						continue
					}
					if d.Budget != nil && !d.Create && in.Deployment != nil && d.Budget.Spec.MaxUnavailable.IntValue() > maxUnavailable {
						t.Errorf("loosens: %s", at)
					}
					if d.Deployment != nil && !d.Create && in.Budget != nil && *d.Deployment.Spec.Replicas < replicas {
						t.Errorf("shrinks: %s", at)
					}
				}
			}
		}
	}
}

// The override that the topology replaces is reported, in whatever state the guard is, and never decides over the guard.
func TestDeprecation(t *testing.T) {
	for raw, says := range map[string]string{
		"": "", `{"a":1}`: "", `{"` + key + `":"true"}`: "is deprecated: it is honored", key + ": false\n": "is deprecated and false",
		`{"` + key + `":"maybe"}`: "want true or false",
	} {
		for _, mode := range allModes {
			with := of(mode, 3, conditions())
			without := said(t, etcdguard.Decide(with))
			with.Etcd.Spec.UnsupportedConfigOverrides.Raw = []byte(raw)
			decision := etcdguard.Decide(with)
			if got := decision.Deprecation; (got == "") != (says == "") || !strings.Contains(got, says) {
				t.Errorf("%q, %q: says %q, want something with %q", mode, raw, got, says)
			}
			if got := said(t, decision); got != without {
				t.Errorf("%q, %q: %s, without it %s", mode, raw, got, without)
			}
		}
	}
}
