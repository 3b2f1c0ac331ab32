// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology/topologytest"
)

func describe(d decision.Decision) string {
	words := []string{string(actionOf(d))}
	if actionOf(d) == decision.Nothing {
		words[0] = "Nothing"
	}
	if stepOf(d).Create {
		words = append(words, "create")
	}
	if d.ClusterVersion.Intent != nil {
		words = append(words, fmt.Sprintf("%d entries", len(d.ClusterVersion.Intent.(*configv1ac.ClusterVersionApplyConfiguration).Spec.Overrides)))
	}
	if stepOf(d).NewOwner != "" {
		words = append(words, "to "+map[string]string{cvo: "cvo", fieldOwner + "-released": "no owner"}[stepOf(d).NewOwner])
	}
	if deploymentOf(d) != nil {
		words = append(words, fmt.Sprintf("%d of %s", *deploymentOf(d).Spec.Replicas, *deploymentOf(d).Spec.Template.Spec.Containers[0].Image))
	}
	if budgetOf(d) != nil {
		words = append(words, "maxUnavailable "+budgetOf(d).Spec.MaxUnavailable.String())
	}
	if len(stepOf(d).Unset) > 0 {
		words = append(words, "unset "+strings.Join(stepOf(d).Unset, " "))
	}
	if d.Result != nil {
		words = append(words, "("+strings.TrimPrefix(d.Result.State.String()+" "+d.Result.Reason, "Progressing ")+")")
	}
	return strings.Join(words, ", ")
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		in   decision.Inputs
		want string
	}{
		// One node.
		"one node, claimed and not observed":     {with(topologytest.SR, 1, claimUnobserved), "Nothing, (TakingOver)"},
		"one node, the budget is gone":           {with(topologytest.SR, 1, claimObserved, noBudget), "DeleteDeployment, (Removing)"},
		"one node, the Deployment is gone":       {with(topologytest.SR, 1, claimObserved, noDeployment), "DeleteBudget, (Removing)"},
		"one node, both are gone":                {with(topologytest.SR, 1, claimObserved, noGuard), "Nothing, (InForce AsExpected)"},
		"one node, no guard":                     {with(topologytest.SR, 1, noGuard), "Nothing, (NotNeeded NotNeeded)"},
		"one node, no ClusterVersion, own guard": {with(topologytest.SR, 1, ours(topologytest.HA, 3), noVersion), "DeleteBudget, (Removing)"},
		"one node, the bootstrap member":         {with(topologytest.SR, 1, claimObserved, members(2, 2)), "Nothing, (Waiting WaitingForMembers)"},
		"one node, and a learner": {with(topologytest.SR, 1, claimObserved, func(in *decision.Inputs) {
			in.Members[0].Learner = true
			in.Members = append(in.Members, etcdguard.Member{ID: 9, Healthy: true})
		}), "DeleteBudget, (Removing)"},
		"one node, of an earlier operator":     {with(topologytest.SR, 1, stockGuard), "DeleteBudget, (Removing)"},
		"one node, claimed on a newer release": {with(topologytest.SR, 1, claimObserved, noGuard, conditions("GuardControllerDegraded")), "Unclaim, (Removing)"},

		// A correct guard.
		"unknown topology, the same":          {with(topologytest.Unknown, 3), "Nothing, (NotNeeded NotNeeded)"},
		"one of three nodes exists":           {with(topologytest.HA, 1), "Nothing, (NotNeeded NotNeeded)"},
		"no nodes yet":                        {with(topologytest.HA, 0), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes without roles":           {with(topologytest.HA, 0, noRoles), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, guards of the operator": {with(topologytest.HA, 3, noGuard, operatorGuard), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, minAvailable 2 of 3":    {with(topologytest.HA, 3, minAvailable("2")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, a budget of 33%":        {with(topologytest.HA, 3, maxUnavailable("33%")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, and learners": {with(topologytest.HA, 3, func(in *decision.Inputs) {
			in.Members = append(in.Members, etcdguard.Member{ID: 8, Healthy: true, Learner: true}, etcdguard.Member{ID: 9, Healthy: true, Learner: true})
		}), "Nothing, (NotNeeded NotNeeded)"},

		// The cluster-version-operator corrects its guard.
		"three nodes, budget being deleted":        {with(topologytest.HA, 3, deletedBudget), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, another selector":            {with(topologytest.HA, 3, otherSelector), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no Deployment":               {with(topologytest.HA, 3, image, noDeployment), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, not observed":     {with(topologytest.HA, 3, noBudget, versionUnobserved), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, claim of others":  {with(topologytest.HA, 3, claimOfOthers, noBudget), "ApplyBudget, create, maxUnavailable 1, (RollingOut)"},
		"three nodes, no budget, own claim":        {with(topologytest.HA, 3, claimObserved, noBudget), "ApplyBudget, create, maxUnavailable 1, (RollingOut)"},
		"three nodes, a released guard, no budget": {with(topologytest.HA, 3, noBudget, released), "Claim, 2 entries, (TakingOver)"},
		"three nodes, no guard":                    {with(topologytest.HA, 3, image, noGuard), "Claim, 2 entries, (TakingOver)"},
		"five: no budget":                          {with(topologytest.HA, 5, noBudget), "Claim, 2 entries, (TakingOver)"},
		"arbiter, no budget":                       {with(topologytest.Arbiter, 3, noBudget), "Claim, 2 entries, (TakingOver)"},

		// A wrong guard.
		"five: the release's guard":      {with(topologytest.HA, 5), "Claim, 2 entries, (TakingOver)"},
		"five: one entry":                {with(topologytest.HA, 5, oneEntry), "Claim, 1 entries, (TakingOver)"},
		"five: claimed and not observed": {with(topologytest.HA, 5, claimUnobserved), "Nothing, (TakingOver)"},
		"five: settled, one cordoned and not ready": {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), func(in *decision.Inputs) {
			in.Nodes[1].Spec.Unschedulable = true
			in.Nodes[1].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}), "Nothing"},
		"five: settled, not observed": {with(topologytest.HA, 5, ours(topologytest.HA, 5), claimUnobserved), "Nothing"},
		"five: another image":         {with(topologytest.HA, 5, claimObserved, image), "ApplyDeployment, 5 of other, (RollingOut)"},
		"five: own Deployment":        {with(topologytest.HA, 5, claimObserved, ourDeployment), "ApplyBudget, maxUnavailable 2, (RollingOut)"},
		"five: settled, no version":   {with(topologytest.HA, 5, ours(topologytest.HA, 5), noVersion), "Nothing"},
		"five: minAvailable": {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), minAvailable("2")),
			"ApplyBudget, maxUnavailable 2, unset .spec.minAvailable, (RollingOut)"},
		"five: always evict":                {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), alwaysAllow), "ApplyBudget, maxUnavailable 2, (RollingOut)"},
		"five: entries removed":             {with(topologytest.HA, 5, ours(topologytest.HA, 5)), "Claim, 2 entries, (TakingOver)"},
		"five: no guard, no image":          {with(topologytest.HA, 5, noGuard), "Nothing, (Waiting WaitingForObject)"},
		"five: no guard, no image, claimed": {with(topologytest.HA, 5, noGuard, claimObserved), "Unclaim, (Waiting WaitingForObject)"},
		"five: no guard":                    {with(topologytest.HA, 5, noGuard, claimObserved, image), "ApplyBudget, create, maxUnavailable 2, (RollingOut)"},
		"five: only a budget": {with(topologytest.HA, 5, claimObserved, image, ours(topologytest.HA, 5), noDeployment),
			"ApplyDeployment, create, 5 of other, (RollingOut)"},
		"five: no budget, three guards":  {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 3), noBudget), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"five: no budget, five guards":   {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), noBudget), "ApplyBudget, create, maxUnavailable 2, (RollingOut)"},
		"five: being deleted":            {with(topologytest.HA, 5, claimObserved, deletedDeployment), "Nothing, (Waiting WaitingForObject)"},
		"arbiter, the release's guard":   {with(topologytest.Arbiter, 3), "Claim, 2 entries, (TakingOver)"},
		"arbiter, claimed":               {with(topologytest.Arbiter, 3, claimObserved), "ApplyBudget, maxUnavailable 1, (RollingOut)"},
		"two nodes, the release's guard": {with(topologytest.Dual, 2), "Claim, 2 entries, (TakingOver)"},
		"two nodes, own budget":          {with(topologytest.Dual, 2, claimObserved, smallBudget), "ApplyDeployment, 2 of cli, (RollingOut)"},

		// Changes of the size.
		"grown from three":                 {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 3)), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"grown, members not read":          {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 3), noMembers), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"shrunk to four":                   {with(topologytest.HA, 4, claimObserved, ours(topologytest.HA, 5)), "ApplyBudget, maxUnavailable 1, (RollingOut)"},
		"shrunk to four, budget changed":   {with(topologytest.HA, 4, claimObserved, ours(topologytest.HA, 5), smallBudget), "ApplyDeployment, 4 of cli, (RollingOut)"},
		"shrunk, members have not":         {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 5), members(5, 3)), "Nothing"},
		"shrunk, members not read":         {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 5), noMembers), "Nothing, (MembersUnhealthy)"},
		"shrunk, one of three is down":     {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 5), members(3, 2)), "Nothing, (MembersUnhealthy)"},
		"too strict":                       {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 3), maxUnavailable("0")), "ApplyBudget, maxUnavailable 1, (RollingOut)"},
		"too strict, one of three is down": {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 3), maxUnavailable("0"), members(3, 2)), "Nothing, (MembersUnhealthy)"},
		"too weak, one of three is down": {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 3), maxUnavailable("2"), members(3, 2)),
			"ApplyBudget, maxUnavailable 1, (RollingOut)"},
		"from one node to three, no image": {with(topologytest.HA, 1, claimObserved, noGuard), "Unclaim, (Waiting WaitingForObject)"},
		"from one node, no certificate":    {with(topologytest.HA, 1, claimObserved, noGuard, image, noBundle), "Nothing, (Waiting CertificateMissing)"},
		"from one node to three":           {with(topologytest.HA, 1, claimObserved, noGuard, image), "ApplyBudget, create, maxUnavailable 1, (RollingOut)"},

		// Releasing.
		"three again, settled":           {with(topologytest.HA, 3, claimObserved, ours(topologytest.HA, 3)), "DisownDeployment, to cvo, (GivingBack)"},
		"three again, half released":     {with(topologytest.HA, 3, claimObserved, smallBudget), "DisownBudget, to cvo, (GivingBack)"},
		"three again, released":          {with(topologytest.HA, 3, claimObserved), "Unclaim, (GivingBack)"},
		"three again, entries of others": {with(topologytest.HA, 3, ours(topologytest.HA, 3), claimOfOthers), "Nothing"},
		"opted out":                      {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), optOut), "DisownDeployment, to cvo, (OptedOut OptedOut)"},
		"opted out, no ClusterVersion": {with(topologytest.HA, 5, ours(topologytest.HA, 5), optOut, func(in *decision.Inputs) {
			in.Deployment.Annotations, in.ClusterVersion = in.ClusterVersion.Annotations, nil
		}), "DisownDeployment, to no owner, (OptedOut OptedOut)"},
		"opted out on one node":  {with(topologytest.SR, 1, claimObserved, optOut), "Unclaim, (OptedOut OptedOut)"},
		"External, claimed":      {with(topologytest.External, 0, claimObserved), "Unclaim, (NotNeeded NotNeeded)"},
		"guards of the operator": {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), operatorGuard), "DeleteBudget, (NotNeeded NotNeeded)"},
		"guards of the operator, not created yet": {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), conditions("GuardControllerDegraded")),
			"Nothing, (GivingBack)"},
		"guards of the operator, status not observed": {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), operatorGuard, func(in *decision.Inputs) {
			in.PodsBudget.Generation, in.PodsBudget.Status.ObservedGeneration = 2, 1
		}), "Nothing, (GivingBack)"},
		"guards of the operator, claimed": {with(topologytest.HA, 5, claimObserved, noGuard, operatorGuard), "Unclaim, (NotNeeded NotNeeded)"},

		// Other clients.
		"a person scaled it":                        {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"a person scaled it, by force":              {with(topologytest.HA, 5, claimObserved, ours(topologytest.HA, 5), scaled, force), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"a person scaled it, on one node":           {with(topologytest.SR, 1, claimObserved, scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"a person scaled it, on one node, by force": {with(topologytest.SR, 1, claimObserved, scaled, force), "DeleteBudget, (Removing)"},
		"a conflicting entry, by force":             {with(topologytest.HA, 5, conflictingEntry, force), "Nothing, (Blocked FieldOwnedByOther)"},
		"a conflicting entry, own guard":            {with(topologytest.HA, 5, conflictingEntry, ours(topologytest.HA, 5)), "DisownDeployment, to cvo, (Blocked FieldOwnedByOther)"},
		"entries of others":                         {with(topologytest.HA, 5, claimOfOthers), "ApplyDeployment, 5 of cli, (RollingOut)"},

		// Unreadable inputs.
		"no topology":       {with(topologytest.SR, 1, claimObserved, noCluster), "Nothing, (Waiting WaitingForInfrastructure)"},
		"nodes not read":    {with(topologytest.HA, 5, claimObserved, noNodes), "Nothing, (Waiting WaitingForNodes)"},
		"no ClusterVersion": {with(topologytest.SR, 1, noVersion), "Nothing, (Waiting WaitingForObject)"},
		"damaged managedFields": {with(topologytest.SR, 1, claimObserved, func(in *decision.Inputs) { signed(in.Budget, "x", `{"f:spec":1}`) }),
			"Nothing, (Failed Invalid)"},
		"some other Deployment": {with(topologytest.HA, 5, claimObserved, otherContainer), "Nothing, (Failed Invalid)"},
		"a member twice":        {with(topologytest.HA, 5, claimObserved, func(in *decision.Inputs) { in.Members[1].ID = 1 }), "Nothing, (Failed Invalid)"},
	} {
		t.Run(name, func(t *testing.T) {
			before := fixture.Text(test.in)
			if got := describe(decision.Decide(test.in)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if fixture.Text(test.in) != before {
				t.Error("the inputs were changed")
			}
			if one, two := fixture.Text(decision.Decide(test.in)), fixture.Text(decision.Decide(test.in)); one != two {
				t.Errorf("not deterministic: %s\nand then %s", one, two)
			}
		})
	}
}

// TestFailedReads checks U-ETC-8: if inputs are missing, no guard is deleted or relaxed.
func TestFailedReads(t *testing.T) {
	remove := []change{noCluster, noNodes, noMembers, noVersion, noDeployment, noBudget, func(in *decision.Inputs) { noSecret(in); noBundle(in) }}
	sizes := []int{1, 5}
	if testing.Short() {
		sizes = sizes[1:]
	}
	for _, mode := range topologytest.AllModes {
		for _, n := range sizes {
			for start, changes := range [][]change{
				{}, {claimObserved}, {claimObserved, ours(topologytest.HA, 5)}, {ours(topologytest.HA, 5)}, {stockGuard}, {claimObserved, ours(topologytest.HA, 5), force},
			} {
				for removed := range len(remove) * len(remove) {
					in := with(mode, n, changes...)
					replicas, maxUnavailable := *in.Deployment.Spec.Replicas, in.Budget.Spec.MaxUnavailable.IntValue()
					remove[removed/len(remove)](&in)
					remove[removed%len(remove)](&in)
					d := decision.Decide(in)
					at := fmt.Sprintf("%q, %d nodes, start %d, removed %d: %s", mode, n, start, removed, describe(d))
					deletes := actionOf(d) == decision.DeleteBudget || actionOf(d) == decision.DeleteDeployment
					if deletes && (mode != topologytest.SR || in.Cluster == nil || in.Members == nil) {
						t.Errorf("deletes: %s", at)
					}
					if in.Cluster != nil && in.Nodes != nil && in.Members != nil {
						continue
					}
					if budgetOf(d) != nil && !stepOf(d).Create && in.Deployment != nil && budgetOf(d).Spec.MaxUnavailable.IntValue() > maxUnavailable {
						t.Errorf("relaxes: %s", at)
					}
					if deploymentOf(d) != nil && !stepOf(d).Create && in.Budget != nil && *deploymentOf(d).Spec.Replicas < replicas {
						t.Errorf("shrinks: %s", at)
					}
				}
			}
		}
	}
}

// TestDeprecation checks that the override is reported and does not change the decision.
func TestDeprecation(t *testing.T) {
	for raw, message := range map[string]string{
		"": "", `{"a":1}`: "", `{"` + fixture.OverrideKey + `":"true"}`: "is deprecated: it is honored", fixture.OverrideKey + ": false\n": "is deprecated and false",
		`{"` + fixture.OverrideKey + `":"maybe"}`: "want true or false",
	} {
		for _, mode := range topologytest.AllModes {
			in := with(mode, 3, conditions())
			without := describe(decision.Decide(in))
			in.Etcd.Spec.UnsupportedConfigOverrides.Raw = []byte(raw)
			decided := decision.Decide(in)
			if got := decided.Deprecation; (got == "") != (message == "") || !strings.Contains(got, message) {
				t.Errorf("%q, %q: %q, want something with %q", mode, raw, got, message)
			}
			if got := describe(decided); got != without {
				t.Errorf("%q, %q: %s, without it %s", mode, raw, got, without)
			}
		}
	}
}

// TestNeedsMembers checks that members do not change a decision that does not need them.
func TestNeedsMembers(t *testing.T) {
	needed, unneeded := 0, 0
	for _, mode := range topologytest.AllModes {
		for n := range 6 {
			for name, changes := range map[string][]change{
				"static": nil, "ours": {ours(topologytest.HA, 5), claimObserved}, "none": {noGuard}, "half": {noDeployment}, "no topology": {noCluster},
				"operator": {operatorGuard},
			} {
				in := with(mode, n, append(changes, noMembers)...)
				if in.NeedsMembers() {
					needed++
					continue
				}
				unneeded++
				want := fixture.Text(decision.Decide(in))
				for members := range 6 {
					in.Members = fixture.MembersOf(members, members/2+1)
					if got := fixture.Text(decision.Decide(in)); got != want {
						t.Errorf("%s, %d nodes, %s: with %d members\n%s\nwithout\n%s", mode, n, name, members, got, want)
					}
				}
			}
		}
	}
	if needed == 0 || unneeded == 0 {
		t.Errorf("needed %d times, not needed %d times", needed, unneeded)
	}
}

func TestTransferOwnership(t *testing.T) {
	type entries = []metav1.ManagedFieldsEntry
	ours, theirs, person := entry(fieldOwner, replicasJSON), entry(cvo, replicasJSON), entry(person, replicasJSON)
	status := entry(fieldOwner, `{"f:status":{}}`)
	status.Subresource = "status"
	both := entry(cvo, `{"f:spec":{"f:a":{},"f:b":{},"f:c":{}}}`)
	for name, test := range map[string]struct{ entries, want entries }{
		"nothing":             {nil, nil},
		"none of this module": {entries{person}, entries{person}},
		"only this module":    {entries{ours}, entries{theirs}},
		"with a person's":     {entries{ours, person}, entries{theirs, person}},
		"both":                {entries{entry(fieldOwner, `{"f:spec":{"f:a":{},"f:b":{}}}`), entry(cvo, `{"f:spec":{"f:b":{},"f:c":{}}}`)}, entries{both}},
		"both, reversed":      {entries{entry(cvo, `{"f:spec":{"f:b":{},"f:c":{}}}`), entry(fieldOwner, `{"f:spec":{"f:a":{},"f:b":{}}}`)}, entries{both}},
		"another subresource": {entries{status, ours}, entries{status, theirs}},
	} {
		before := fixture.Text(test.entries)
		got, err := decision.TransferOwnership(test.entries, cvo)
		if diff := cmp.Diff(fixture.Text(test.want), fixture.Text(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if fixture.Text(test.entries) != before {
			t.Errorf("%s: the argument was changed", name)
		}
	}
	if _, err := decision.TransferOwnership(entries{entry(fieldOwner, `{"f:spec":1}`)}, cvo); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("damaged: %v", err)
	}
}

type wanted struct {
	Decision    string `json:"decision"`
	Apply       any    `json:"apply,omitempty"`
	Result      string `json:"result"`
	Deprecation string `json:"deprecation,omitempty"`
}
