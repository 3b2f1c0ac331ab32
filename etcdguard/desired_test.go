package etcdguard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/patchtest"
)

// described is a decision in a few words.
func described(d etcdguard.Decision) string {
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
	if d.NewOwner != "" {
		words = append(words, "to "+map[string]string{cvo: "release", us + "-released": "nobody"}[d.NewOwner])
	}
	if d.Deployment != nil {
		words = append(words, fmt.Sprintf("%d of %s", *d.Deployment.Spec.Replicas, *d.Deployment.Spec.Template.Spec.Containers[0].Image))
	}
	if d.Budget != nil {
		words = append(words, "lets "+d.Budget.Spec.MaxUnavailable.String())
	}
	if len(d.Unset) > 0 {
		words = append(words, "less "+strings.Join(d.Unset, " "))
	}
	if d.Result != nil {
		words = append(words, "("+strings.TrimPrefix(d.Result.State.String()+" "+d.Result.Reason, "Progressing ")+")")
	}
	return strings.Join(words, ", ")
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		in   etcdguard.Inputs
		want string
	}{
		// One node.
		"one node, claimed and not seen":    {with(sr, 1, unseen), "Nothing, (TakingOver)"},
		"one node, the budget is gone":      {with(sr, 1, seen, noBudget), "DeleteDeployment, (Removing)"},
		"one node, the Deployment is gone":  {with(sr, 1, seen, noDeployment), "DeleteBudget, (Removing)"},
		"one node, both are gone":           {with(sr, 1, seen, noGuard), "Nothing, (InForce AsExpected)"},
		"one node, there never was one":     {with(sr, 1, noGuard), "Nothing, (NotNeeded NotNeeded)"},
		"one node, no ClusterVersion, ours": {with(sr, 1, ours(ha, 3), noVersion), "DeleteBudget, (Removing)"},
		"one node, the bootstrap member":    {with(sr, 1, seen, members(2, 2)), "Nothing, (Waiting WaitingForMembers)"},
		"one node, and a learner": {with(sr, 1, seen, func(in *etcdguard.Inputs) {
			in.Members[0].Learner = true
			in.Members = append(in.Members, etcdguard.Member{ID: 9, Healthy: true})
		}), "DeleteBudget, (Removing)"},
		"one node, left by an operator":        {with(sr, 1, left), "DeleteBudget, (Removing)"},
		"one node, claimed on a newer release": {with(sr, 1, seen, noGuard, conditions("GuardControllerDegraded")), "Unclaim, (Removing)"},

		// A guard of the right strength.
		"unknown topology, the same":       {with(unknown, 3), "Nothing, (NotNeeded NotNeeded)"},
		"one of three nodes there yet":     {with(ha, 1), "Nothing, (NotNeeded NotNeeded)"},
		"no nodes yet":                     {with(ha, 0), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes without roles":        {with(ha, 0, noRoles), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, the operator's own":  {with(ha, 3, noGuard, operatorGuard), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, minAvailable 2 of 3": {with(ha, 3, minAvailable("2")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, a budget of 33%":     {with(ha, 3, maxUnavailable("33%")), "Nothing, (NotNeeded NotNeeded)"},
		"three nodes, and learners": {with(ha, 3, func(in *etcdguard.Inputs) {
			in.Members = append(in.Members, etcdguard.Member{ID: 8, Healthy: true, Learner: true}, etcdguard.Member{ID: 9, Healthy: true, Learner: true})
		}), "Nothing, (NotNeeded NotNeeded)"},

		// The release's guard would be right, and what exists of it is not: the cluster-version-operator corrects it.
		"three nodes, the budget is going":         {with(ha, 3, deletedBudget), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, another selector":            {with(ha, 3, otherSelector), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no Deployment":               {with(ha, 3, image, noDeployment), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, not seen":         {with(ha, 3, noBudget, unseenVersion), "Nothing, (Waiting WaitingForObject)"},
		"three nodes, no budget, others' claim":    {with(ha, 3, theirs, noBudget), "ApplyBudget, create, lets 1, (RollingOut)"},
		"three nodes, no budget, our claim":        {with(ha, 3, seen, noBudget), "ApplyBudget, create, lets 1, (RollingOut)"},
		"three nodes, a released guard, no budget": {with(ha, 3, noBudget, released), "Claim, 2 entries, (TakingOver)"},
		"three nodes, no guard":                    {with(ha, 3, image, noGuard), "Claim, 2 entries, (TakingOver)"},
		"five: no budget":                          {with(ha, 5, noBudget), "Claim, 2 entries, (TakingOver)"},
		"arbiter, no budget":                       {with(arbiter, 3, noBudget), "Claim, 2 entries, (TakingOver)"},

		// A guard that does not fit.
		"five: the release's guard":  {with(ha, 5), "Claim, 2 entries, (TakingOver)"},
		"five: one entry":            {with(ha, 5, oneEntry), "Claim, 1 entries, (TakingOver)"},
		"five: claimed and not seen": {with(ha, 5, unseen), "Nothing, (TakingOver)"},
		"five: settled, one cordoned and not ready": {with(ha, 5, seen, ours(ha, 5), func(in *etcdguard.Inputs) {
			in.Nodes[1].Spec.Unschedulable = true
			in.Nodes[1].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}), "Nothing"},
		"five: settled, not seen":        {with(ha, 5, ours(ha, 5), unseen), "Nothing"},
		"five: another image":            {with(ha, 5, seen, image), "ApplyDeployment, 5 of other, (RollingOut)"},
		"five: the Deployment is ours":   {with(ha, 5, seen, ourDeployment), "ApplyBudget, lets 2, (RollingOut)"},
		"five: settled, no version":      {with(ha, 5, ours(ha, 5), noVersion), "Nothing"},
		"five: minAvailable":             {with(ha, 5, seen, ours(ha, 5), minAvailable("2")), "ApplyBudget, lets 2, less .spec.minAvailable, (RollingOut)"},
		"five: always evict":             {with(ha, 5, seen, ours(ha, 5), alwaysAllow), "ApplyBudget, lets 2, (RollingOut)"},
		"five: the entries taken off":    {with(ha, 5, ours(ha, 5)), "Claim, 2 entries, (TakingOver)"},
		"five: no guard, no image":       {with(ha, 5, noGuard), "Nothing, (Waiting WaitingForObject)"},
		"five: no guard, no image, ours": {with(ha, 5, noGuard, seen), "Unclaim, (Waiting WaitingForObject)"},
		"five: no guard":                 {with(ha, 5, noGuard, seen, image), "ApplyBudget, create, lets 2, (RollingOut)"},
		"five: only a budget":            {with(ha, 5, seen, image, ours(ha, 5), noDeployment), "ApplyDeployment, create, 5 of other, (RollingOut)"},
		"five: no budget, three guards":  {with(ha, 5, seen, ours(ha, 3), noBudget), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"five: no budget, five guards":   {with(ha, 5, seen, ours(ha, 5), noBudget), "ApplyBudget, create, lets 2, (RollingOut)"},
		"five: being deleted":            {with(ha, 5, seen, deletedDeployment), "Nothing, (Waiting WaitingForObject)"},
		"arbiter, the release's guard":   {with(arbiter, 3), "Claim, 2 entries, (TakingOver)"},
		"arbiter, seen":                  {with(arbiter, 3, seen), "ApplyBudget, lets 1, (RollingOut)"},
		"two nodes, the release's guard": {with(dual, 2), "Claim, 2 entries, (TakingOver)"},
		"two nodes, the budget is ours":  {with(dual, 2, seen, oneBudget), "ApplyDeployment, 2 of cli, (RollingOut)"},

		// The size follows the cluster, and nothing is relaxed while members are missing.
		"grown from three":                 {with(ha, 5, seen, ours(ha, 3)), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"grown, members not read":          {with(ha, 5, seen, ours(ha, 3), noMembers), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"shrunk to four":                   {with(ha, 4, seen, ours(ha, 5)), "ApplyBudget, lets 1, (RollingOut)"},
		"shrunk to four, the budget is":    {with(ha, 4, seen, ours(ha, 5), oneBudget), "ApplyDeployment, 4 of cli, (RollingOut)"},
		"shrunk, the members are not":      {with(ha, 3, seen, ours(ha, 5), members(5, 3)), "Nothing"},
		"shrunk, members not read":         {with(ha, 3, seen, ours(ha, 5), noMembers), "Nothing, (MembersUnhealthy)"},
		"shrunk, one of three is down":     {with(ha, 3, seen, ours(ha, 5), members(3, 2)), "Nothing, (MembersUnhealthy)"},
		"stricter than need be":            {with(ha, 3, seen, ours(ha, 3), maxUnavailable("0")), "ApplyBudget, lets 1, (RollingOut)"},
		"the same, one of three is down":   {with(ha, 3, seen, ours(ha, 3), maxUnavailable("0"), members(3, 2)), "Nothing, (MembersUnhealthy)"},
		"looser, one of three is down":     {with(ha, 3, seen, ours(ha, 3), maxUnavailable("2"), members(3, 2)), "ApplyBudget, lets 1, (RollingOut)"},
		"from one node to three, no image": {with(ha, 1, seen, noGuard), "Unclaim, (Waiting WaitingForObject)"},
		"from one node, no certificate":    {with(ha, 1, seen, noGuard, image, noBundle), "Nothing, (Waiting CertificateMissing)"},
		"from one node to three":           {with(ha, 1, seen, noGuard, image), "ApplyBudget, create, lets 1, (RollingOut)"},

		// Releasing.
		"three again, settled":           {with(ha, 3, seen, ours(ha, 3)), "DisownDeployment, to release, (GivingBack)"},
		"three again, half released":     {with(ha, 3, seen, oneBudget), "DisownBudget, to release, (GivingBack)"},
		"three again, released":          {with(ha, 3, seen), "Unclaim, (GivingBack)"},
		"three again, entries of others": {with(ha, 3, ours(ha, 3), theirs), "Nothing"},
		"opted out":                      {with(ha, 5, seen, ours(ha, 5), optOut), "DisownDeployment, to release, (OptedOut OptedOut)"},
		"opted out, no ClusterVersion": {with(ha, 5, ours(ha, 5), optOut, func(in *etcdguard.Inputs) {
			in.Deployment.Annotations, in.ClusterVersion = in.ClusterVersion.Annotations, nil
		}), "DisownDeployment, to nobody, (OptedOut OptedOut)"},
		"opted out on one node":    {with(sr, 1, seen, optOut), "Unclaim, (OptedOut OptedOut)"},
		"External, something left": {with(external, 0, seen), "Unclaim, (NotNeeded NotNeeded)"},
		"the operator guards now":  {with(ha, 5, seen, ours(ha, 5), operatorGuard), "DeleteBudget, (NotNeeded NotNeeded)"},
		"the operator is about to": {with(ha, 5, seen, ours(ha, 5), conditions("GuardControllerDegraded")), "Nothing, (GivingBack)"},
		"the operator guards, of a generation before": {with(ha, 5, seen, ours(ha, 5), operatorGuard, func(in *etcdguard.Inputs) {
			in.PodsBudget.Generation, in.PodsBudget.Status.ObservedGeneration = 2, 1
		}), "Nothing, (GivingBack)"},
		"the operator guards, claimed": {with(ha, 5, seen, noGuard, operatorGuard), "Unclaim, (NotNeeded NotNeeded)"},

		// Other clients.
		"a person scaled it":              {with(ha, 5, seen, ours(ha, 5), scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"a person scaled it, by force":    {with(ha, 5, seen, ours(ha, 5), scaled, force), "ApplyDeployment, 5 of cli, (RollingOut)"},
		"a person scaled it, on one node": {with(sr, 1, seen, scaled), "Nothing, (Blocked FieldOwnedByOther)"},
		"by force, on one node":           {with(sr, 1, seen, scaled, force), "DeleteBudget, (Removing)"},
		"an entry against, by force":      {with(ha, 5, against, force), "Nothing, (Blocked FieldOwnedByOther)"},
		"an entry against, ours":          {with(ha, 5, against, ours(ha, 5)), "DisownDeployment, to release, (Blocked FieldOwnedByOther)"},
		"entries of others":               {with(ha, 5, theirs), "ApplyDeployment, 5 of cli, (RollingOut)"},

		// What cannot be read.
		"no topology":            {with(sr, 1, seen, noCluster), "Nothing, (Waiting WaitingForInfrastructure)"},
		"no nodes read":          {with(ha, 5, seen, noNodes), "Nothing, (Waiting WaitingForNodes)"},
		"no ClusterVersion":      {with(sr, 1, noVersion), "Nothing, (Waiting WaitingForObject)"},
		"damaged managedFields":  {with(sr, 1, seen, func(in *etcdguard.Inputs) { signed(in.Budget, "x", `{"f:spec":1}`) }), "Nothing, (Failed Invalid)"},
		"some other Deployment":  {with(ha, 5, seen, otherContainer), "Nothing, (Failed Invalid)"},
		"a member that is twice": {with(ha, 5, seen, func(in *etcdguard.Inputs) { in.Members[1].ID = 1 }), "Nothing, (Failed Invalid)"},
	} {
		t.Run(name, func(t *testing.T) {
			before := text(test.in)
			if got := described(etcdguard.Decide(test.in)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if text(test.in) != before {
				t.Error("the inputs were changed")
			}
			if one, two := text(etcdguard.Decide(test.in)), text(etcdguard.Decide(test.in)); one != two {
				t.Errorf("%s\nand then %s", one, two)
			}
		})
	}
}

// Whatever could not be read, in whatever state of the cluster (U-ETC-8): nothing is deleted and nothing is relaxed where the guard is needed, and on
// one node nothing is deleted without the topology and the members.
func TestFailedReads(t *testing.T) {
	lose := []change{noCluster, noNodes, noMembers, noVersion, noDeployment, noBudget, func(in *etcdguard.Inputs) { noSecret(in); noBundle(in) }}
	sizes := []int{1, 5}
	if testing.Short() {
		sizes = sizes[1:]
	}
	for _, mode := range allModes {
		for _, n := range sizes {
			for start, changes := range [][]change{{}, {seen}, {seen, ours(ha, 5)}, {ours(ha, 5)}, {left}, {seen, ours(ha, 5), force}} {
				for lost := range len(lose) * len(lose) {
					in := with(mode, n, changes...)
					replicas, maxUnavailable := *in.Deployment.Spec.Replicas, in.Budget.Spec.MaxUnavailable.IntValue()
					lose[lost/len(lose)](&in)
					lose[lost%len(lose)](&in)
					d := etcdguard.Decide(in)
					at := fmt.Sprintf("%q, %d nodes, start %d, lost %d: %s", mode, n, start, lost, described(d))
					deletes := d.Action == etcdguard.DeleteBudget || d.Action == etcdguard.DeleteDeployment
					if deletes && (mode != sr || in.Cluster == nil || in.Members == nil) {
						t.Errorf("deletes: %s", at)
					}
					if in.Cluster != nil && in.Nodes != nil && in.Members != nil {
						continue
					}
					if d.Budget != nil && !d.Create && in.Deployment != nil && d.Budget.Spec.MaxUnavailable.IntValue() > maxUnavailable {
						t.Errorf("relaxes: %s", at)
					}
					if d.Deployment != nil && !d.Create && in.Budget != nil && *d.Deployment.Spec.Replicas < replicas {
						t.Errorf("shrinks: %s", at)
					}
				}
			}
		}
	}
}

// The override that the topology replaces is reported, whatever the state of the guard, and does not change the decision.
func TestDeprecation(t *testing.T) {
	for raw, message := range map[string]string{
		"": "", `{"a":1}`: "", `{"` + overrideKey + `":"true"}`: "is deprecated: it is honored", overrideKey + ": false\n": "is deprecated and false",
		`{"` + overrideKey + `":"maybe"}`: "want true or false",
	} {
		for _, mode := range allModes {
			in := with(mode, 3, conditions())
			without := described(etcdguard.Decide(in))
			in.Etcd.Spec.UnsupportedConfigOverrides.Raw = []byte(raw)
			decision := etcdguard.Decide(in)
			if got := decision.Deprecation; (got == "") != (message == "") || !strings.Contains(got, message) {
				t.Errorf("%q, %q: %q, want something with %q", mode, raw, got, message)
			}
			if got := described(decision); got != without {
				t.Errorf("%q, %q: %s, without it %s", mode, raw, got, without)
			}
		}
	}
}

// Where the members are not needed they make no difference.
func TestNeedsMembers(t *testing.T) {
	needed, not := 0, 0
	for _, mode := range allModes {
		for n := range 6 {
			for name, changes := range map[string][]change{
				"static": nil, "ours": {ours(ha, 5), seen}, "none": {noGuard}, "half": {noDeployment}, "no topology": {noCluster}, "operator": {operatorGuard},
			} {
				in := with(mode, n, append(changes, noMembers)...)
				if in.NeedsMembers() {
					needed++
					continue
				}
				not++
				want := text(etcdguard.Decide(in))
				for members := range 6 {
					in.Members = membersOf(members, members/2+1)
					if got := text(etcdguard.Decide(in)); got != want {
						t.Errorf("%s, %d nodes, %s: with %d members it decides\n%s\nand without\n%s", mode, n, name, members, got, want)
					}
				}
			}
		}
	}
	if needed == 0 || not == 0 {
		t.Errorf("needed %d times, not needed %d times", needed, not)
	}
}

func TestTransferOwnership(t *testing.T) {
	type entries = []metav1.ManagedFieldsEntry
	ours, theirs, person := entry(us, replicasJSON), entry(cvo, replicasJSON), entry(person, replicasJSON)
	status := entry(us, `{"f:status":{}}`)
	status.Subresource = "status"
	both := entry(cvo, `{"f:spec":{"f:a":{},"f:b":{},"f:c":{}}}`)
	for name, test := range map[string]struct{ entries, want entries }{
		"nothing":             {nil, nil},
		"none of ours":        {entries{person}, entries{person}},
		"only ours":           {entries{ours}, entries{theirs}},
		"with a person's":     {entries{ours, person}, entries{theirs, person}},
		"both":                {entries{entry(us, `{"f:spec":{"f:a":{},"f:b":{}}}`), entry(cvo, `{"f:spec":{"f:b":{},"f:c":{}}}`)}, entries{both}},
		"both, theirs first":  {entries{entry(cvo, `{"f:spec":{"f:b":{},"f:c":{}}}`), entry(us, `{"f:spec":{"f:a":{},"f:b":{}}}`)}, entries{both}},
		"another subresource": {entries{status, ours}, entries{status, theirs}},
	} {
		before := text(test.entries)
		got, err := etcdguard.TransferOwnership(test.entries, cvo)
		if diff := cmp.Diff(text(test.want), text(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if text(test.entries) != before {
			t.Errorf("%s: the argument was changed", name)
		}
	}
	if _, err := etcdguard.TransferOwnership(entries{entry(us, `{"f:spec":1}`)}, cvo); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("damaged: %v", err)
	}
}

// wanted is the next write in a golden file. Result is that of Observe where the decision has none.
type wanted struct {
	Decision    string `json:"decision"`
	Apply       any    `json:"apply,omitempty"`
	Result      string `json:"result"`
	Deprecation string `json:"deprecation,omitempty"`
}

func TestGolden(t *testing.T) {
	patchtest.Golden(t, "testdata/decide", func(t *testing.T, input fs.FS) map[string]string {
		in := gathered(t, input)
		d := etcdguard.Decide(in)
		w := wanted{Decision: described(d), Result: etcdguard.Observe(in).String(), Deprecation: d.Deprecation}
		switch {
		case d.ClusterVersion != nil:
			w.Apply = d.ClusterVersion
		case d.Deployment != nil:
			w.Apply = d.Deployment
		case d.Budget != nil:
			w.Apply = d.Budget
		}
		if d.Result != nil {
			w.Result = d.Result.String()
		}
		return map[string]string{"want.yaml": string(must(yaml.Marshal(w)))}
	})
}

// gathered returns the inputs that are in the tree.
func gathered(t *testing.T, input fs.FS) etcdguard.Inputs {
	t.Helper()
	const namespace, guard, budgets = "openshift-etcd", "etcd-quorum-guard", "poddisruptionbudgets.policy"
	return etcdguard.Inputs{
		Cluster:        patchtest.GatheredTopology(t, input),
		Members:        gatheredMembers(t, input),
		Nodes:          patchtest.AllGathered[corev1.Node](t, input, "nodes", ""),
		ClusterVersion: patchtest.Gathered[configv1.ClusterVersion](t, input, "clusterversions.config.openshift.io", "", "version"),
		Etcd:           patchtest.Gathered[operatorv1.Etcd](t, input, "etcds.operator.openshift.io", "", "cluster"),
		Deployment:     patchtest.Gathered[appsv1.Deployment](t, input, "deployments.apps", namespace, guard),
		Budget:         patchtest.Gathered[policyv1.PodDisruptionBudget](t, input, budgets, namespace, guard),
		PodsBudget:     patchtest.Gathered[policyv1.PodDisruptionBudget](t, input, budgets, namespace, "etcd-guard-pdb"),
		ClientSecret:   patchtest.Gathered[corev1.Secret](t, input, "secrets", namespace, "etcd-client") != nil,
		CABundle:       patchtest.Gathered[corev1.ConfigMap](t, input, "configmaps", namespace, "etcd-ca-bundle") != nil,
	}
}

// gatheredMembers reads the members and their health, as etcdctl prints them; nil where the files are missing.
func gatheredMembers(t *testing.T, input fs.FS) []etcdguard.Member {
	t.Helper()
	var list struct {
		Members []struct {
			ID         uint64
			ClientURLs []string
			IsLearner  bool
		}
	}
	var health []struct {
		Endpoint string
		Health   bool
	}
	for file, into := range map[string]any{"etcd_info/member_list.json": &list, "etcd_info/endpoint_health.json": &health} {
		text, err := fs.ReadFile(input, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	members := []etcdguard.Member{}
	for _, m := range list.Members {
		member := etcdguard.Member{ID: m.ID, Learner: m.IsLearner}
		for _, h := range health {
			member.Healthy = member.Healthy || (h.Health && slices.Contains(m.ClientURLs, h.Endpoint))
		}
		members = append(members, member)
	}
	return members
}
