package console_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
)

// situation is everything that the decision over downloads and its override depends on.
type situation struct {
	Topology  string // sr, ha, or "" while it is not known
	Force     bool
	OptOut    bool
	Version   string // none, no entry, ours, theirs, contrary, contrary ours, one value
	Observed  bool
	Downloads string // missing, deleting, release, taken, taken scaled, scaled, stock two, stock one, plain, unreadable, ours unreadable
	Stuck     bool
}

// eachSituation calls f with every one.
func eachSituation(f func(situation)) {
	yes := []bool{false, true}
	for _, topology := range []string{"sr", "ha", ""} {
		for _, version := range []string{"none", "no entry", "ours", "theirs", "contrary", "contrary ours", "one value"} {
			for _, downloads := range []string{"missing", "deleting", "release", "taken", "taken scaled", "scaled", "stock two", "stock one", "plain", "unreadable", "ours unreadable"} {
				for _, force := range yes {
					for _, optOut := range yes {
						for _, observed := range yes {
							for _, stuck := range yes {
								f(situation{topology, force, optOut, version, observed, downloads, stuck})
							}
						}
					}
				}
			}
		}
	}
}

func (s situation) inputs() console.Inputs {
	change := []func(*console.Inputs){consoleIs(stockShape("console"))}
	if s.Topology == "" {
		change = append(change, noCluster)
	} else {
		change = append(change, topologies(s.Topology, s.Topology))
	}
	if s.Force {
		change = append(change, forced)
	}
	cv := version(otherEntry())
	switch s.Version {
	case "none":
		cv = nil
	case "no entry":
	case "ours":
		cv = signed(version(theEntry(true)), us, overrideJSON)
	case "theirs":
		cv = signed(version(theEntry(true)), person, overrideJSON)
	case "contrary":
		cv = signed(version(theEntry(false)), person, overrideJSON)
	case "contrary ours":
		cv = signed(signed(version(theEntry(false)), us, overrideJSON), person, overrideJSON)
	case "one value":
		cv = signed(version(otherEntry()), person, wholeListJSON)
	}
	if cv != nil && !s.Observed {
		unobserved(cv)
	}
	var d *appsv1.Deployment
	switch s.Downloads {
	case "missing":
	case "deleting":
		d = manifest("downloads", deleting, ownedBy(cvo, manifestJSON))
	case "release":
		d = manifest("downloads", ownedBy(cvo, manifestJSON))
	case "taken":
		d = shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(us, shapeJSON))
	case "taken scaled":
		d = shaped("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(us, shapeJSON), ownedBy(person, replicasJSON))
	case "scaled":
		d = manifest("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(person, replicasJSON))
	case "stock two":
		d = manifest("downloads", ownedBy(stock, manifestJSON))
	case "stock one":
		d = stockShape("downloads")
	case "plain":
		d = manifest("downloads", ownedBy("installer", containersJSON))
	case "unreadable":
		d = manifest("downloads", ownedBy(cvo, `{"f:spec":7}`))
	case "ours unreadable":
		d = shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(us, `{"f:spec":7}`))
	}
	if d != nil {
		if s.OptOut {
			optedOut("console")(d)
		}
		if s.Stuck {
			stuck(d)
		}
	}
	return inputs(append(change, clusterVersion(cv), downloads(d))...)
}

// stuck is the status of a Deployment whose new pod never became ready before the deadline, while the old one serves.
func stuck(d *appsv1.Deployment) {
	running(2, 1, 1)(d)
	progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded")(d)
}

// verdict is what is to become of the override and of downloads, and what is said of downloads.
type verdict struct{ Override, Downloads, Reason string }

const applies, givesBack = "apply", "release"

// rule is the decision as a person would state it, from the first that counts to the last.
func (s situation) rule() verdict {
	is := func(value string, of ...string) bool {
		for _, v := range of {
			if v == value {
				return true
			}
		}
		return false
	}
	var (
		gone     = is(s.Downloads, "missing", "deleting")
		ourEntry = is(s.Version, "ours", "contrary ours")
		// byRelease: the cluster-version-operator wrote downloads. holding: something of it is ours, or may be.
		byRelease = is(s.Downloads, "release", "taken", "taken scaled", "scaled", "unreadable", "ours unreadable")
		holding   = is(s.Downloads, "taken", "taken scaled", "ours unreadable")
		// whose: it cannot be read who set what.
		whose    = is(s.Downloads, "unreadable", "ours unreadable")
		byStock  = is(s.Downloads, "stock two", "stock one")
		byPerson = is(s.Downloads, "scaled", "taken scaled")
		needed   = s.Version != "none" && (byRelease || ourEntry)
		serves   = is(s.Version, "ours", "theirs")
	)
	when := func(is bool, what string) string {
		if is {
			return what
		}
		return ""
	}
	if gone { // an override that keeps the release from making downloads goes
		return verdict{when(ourEntry, givesBack), "", "WaitingForObject"}
	}
	// lets is the way out: the shape first, then the override.
	lets := func(reason string) verdict {
		if ourEntry && !s.Observed && holding {
			return verdict{"", "", "GivingBack"}
		}
		return verdict{when(ourEntry && !holding, givesBack), givesBack, reason}
	}
	// kept is the way out where a person's value needs the override.
	kept := func() verdict {
		if whose && s.Version != "none" {
			return verdict{"", "", "Invalid"}
		}
		return verdict{"", givesBack, "FieldOwnedByOther"}
	}
	stands := func(v verdict) verdict { // beside somebody whose rollout is stuck
		if v.Downloads == givesBack && s.Stuck {
			v.Reason = "RolloutStuck"
		}
		return v
	}
	switch {
	case s.OptOut:
		return lets("OptedOut")
	case s.Topology == "":
		return verdict{"", "", "WaitingForInfrastructure"}
	case s.Topology == "ha":
		return lets("NotNeeded")
	case whose && !s.Force:
		return verdict{"", "", "Invalid"}
	case s.Downloads == "stock one" && !s.Force:
		return stands(lets("NotNeeded"))
	case s.Downloads == "stock two" && !s.Force:
		return stands(lets("FieldOwnedByOther"))
	case byPerson && !s.Force:
		return stands(kept())
	case s.Version == "none" && byRelease:
		return verdict{"", "", "WaitingForObject"}
	case needed && is(s.Version, "contrary", "contrary ours", "one value"):
		if byStock {
			return stands(lets("FieldOwnedByOther"))
		}
		return stands(kept())
	case whose:
		return verdict{"", "", "Invalid"}
	case !needed:
		return verdict{"", applies, ""}
	case !serves:
		return verdict{applies, "", "TakingOver"}
	case !s.Observed && s.Downloads != "taken":
		return verdict{when(ourEntry, applies), "", "TakingOver"}
	}
	return verdict{when(ourEntry, applies), applies, ""}
}

// The decision against its rule, over every combination of what it depends on.
func TestDecideAgainstItsRule(t *testing.T) {
	failures, situations := 0, 0
	eachSituation(func(s situation) {
		situations++
		got := s.decide(t)
		if want := s.rule(); got != want && failures < 20 {
			failures++
			t.Errorf("%+v:\n  %+v, want\n  %+v", s, got, want)
		}
	})
	if want := 3 * 7 * 11 * 16; situations != want {
		t.Errorf("%d situations, want %d", situations, want)
	}
}

func (s situation) decide(t *testing.T) verdict {
	t.Helper()
	decision := console.Decide(s.inputs())
	step := func(intent, gives bool) string {
		switch {
		case intent && gives:
			t.Errorf("%+v: applies and releases at once", s)
		case intent:
			return applies
		case gives:
			return givesBack
		}
		return ""
	}
	got := verdict{
		Override:  step(decision.ClusterVersion.Intent != nil, decision.ClusterVersion.Release),
		Downloads: step(decision.Downloads.Intent != nil, decision.Downloads.Release),
	}
	if decision.Downloads.Result != nil {
		got.Reason = decision.Downloads.Result.Reason
	}
	return got
}

// Standing back from somebody whose rollout is stuck is reported, for both Deployments, and changes nothing else of the decision.
func TestDecideStuck(t *testing.T) {
	const remedy = ", which somebody else shapes, does not finish; if a new pod is Pending, delete the old one, whose anti-affinity may keep it off the node"
	way := func(d *appsv1.Deployment) { running(2, 1, 1)(d) }
	late := func(d *appsv1.Deployment) {
		stuck(d)
		d.Generation++
	}
	for name, test := range map[string]struct {
		status func(*appsv1.Deployment)
		shape  func(string, ...func(*appsv1.Deployment)) *appsv1.Deployment
		change []func(*console.Inputs)
		reason string
	}{
		"stock, one replica":               {stuck, stockShape, nil, "RolloutStuck"},
		"stock, two replicas":              {stuck, byStock, nil, "RolloutStuck"},
		"a person's":                       {stuck, byPersonScaled, nil, "RolloutStuck"},
		"under way":                        {way, stockShape, nil, "NotNeeded"},
		"under way, two replicas":          {way, byStock, nil, "FieldOwnedByOther"},
		"a newer rollout is not stuck":     {late, stockShape, nil, "NotNeeded"},
		"highly available is not ours":     {stuck, byStock, changes(topologies("ha", "ha")), "NotNeeded"},
		"removed":                          {stuck, stockShape, changes(managed("Removed")), "NotNeeded"},
		"a person keeps the module away":   {stuck, stockShape, changes(managed("Unmanaged")), "OptedOut"},
		"nothing is known of the topology": {stuck, stockShape, changes(noCluster), "WaitingForInfrastructure"},
	} {
		for _, which := range []string{"console", "downloads"} {
			put := func(status func(*appsv1.Deployment)) func(*console.Inputs) {
				d := test.shape(which, status)
				if which == "console" {
					return func(in *console.Inputs) { in.Console, in.Downloads = d, stockShape("downloads") }
				}
				return func(in *console.Inputs) { in.Console, in.Downloads = stockShape("console"), d }
			}
			in := inputs(append(test.change, put(test.status))...)
			decision := console.Decide(in)
			step, other := decision.Console, decision.Downloads
			if which == "downloads" {
				step, other = other, step
			}
			if step.Result == nil || step.Result.Reason != test.reason {
				t.Errorf("%s, %s: %v, want %s", name, which, step.Result, test.reason)
				continue
			}
			if test.reason == "RolloutStuck" {
				if want := "Failed (RolloutStuck): The rollout of " + which + remedy; step.Result.String() != want {
					t.Errorf("%s, %s: %s\nwant %s", name, which, step.Result, want)
				}
				if overall := decision.Result(); overall != step.Result {
					t.Errorf("%s, %s: %v is reported", name, which, overall)
				}
			}
			calm := console.Decide(inputs(append(test.change, put(func(*appsv1.Deployment) {}))...))
			calmStep, calmOther := calm.Console, calm.Downloads
			if which == "downloads" {
				calmStep, calmOther = calmOther, calmStep
			}
			for what, pair := range map[string][2]console.DeploymentStep{which: {calmStep, step}, "the other": {calmOther, other}} {
				if a, b := fmt.Sprint(pair[0].Intent, pair[0].Unset, pair[0].Release), fmt.Sprint(pair[1].Intent, pair[1].Unset, pair[1].Release); a != b {
					t.Errorf("%s, %s: a stuck rollout changes what is written: %s, then %s", name, what, a, b)
				}
			}
			if calm.ClusterVersion != decision.ClusterVersion {
				t.Errorf("%s, %s: a stuck rollout changes what becomes of the override", name, which)
			}
		}
	}
}

func byStock(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest(name, append(change, ownedBy(stock, manifestJSON))...)
}

func byPersonScaled(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest(name, append(change, scaled, ownedBy(person, replicasJSON))...)
}

// What the intent says of anti-affinity, and what it unsets: lists are one value each.
func TestDecideAntiAffinity(t *testing.T) {
	const (
		affinity  = ".spec.template.spec.affinity"
		apart     = affinity + ".podAntiAffinity"
		required  = apart + ".requiredDuringSchedulingIgnoredDuringExecution"
		preferred = apart + ".preferredDuringSchedulingIgnoredDuringExecution"
		otherTerm = `{"labelSelector":{"matchLabels":{"app":"noisy"}},"topologyKey":"kubernetes.io/hostname"}`
		hard      = `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + otherTerm + `]}}`
		soft      = `{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":2,"podAffinityTerm":` + otherTerm + `}]}}`
		oursJSON  = `{"f:spec":{"f:template":{"f:spec":{"f:affinity":{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`
		emptyJSON = `{"f:spec":{"f:template":{"f:spec":{"f:affinity":{".":{},"f:podAntiAffinity":{}}}}}}`
	)
	other := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "noisy"}}, TopologyKey: "kubernetes.io/hostname"}
	own := spread("ui")[0]
	terms := func(t ...corev1.PodAffinityTerm) []corev1.PodAffinityTerm { return t }
	weighted := func(terms ...corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
		var out []corev1.WeightedPodAffinityTerm
		for i, term := range terms {
			out = append(out, corev1.WeightedPodAffinityTerm{Weight: int32(i + 1), PodAffinityTerm: term}) //nolint:gosec // a few
		}
		return out
	}
	for name, test := range map[string]struct {
		required  []corev1.PodAffinityTerm
		preferred []corev1.WeightedPodAffinityTerm
		nodes     *corev1.NodeAffinity
		owner     func(*appsv1.Deployment)
		intent    string
		unset     []string
	}{
		"nothing":                             {nil, nil, nil, nil, "", nil},
		"required goes":                       {terms(own), nil, nil, nil, "", []string{required, affinity}},
		"preferred goes":                      {nil, weighted(own), nil, nil, "", []string{preferred, affinity}},
		"both go":                             {terms(own), weighted(own), nil, nil, "", []string{required, preferred, affinity}},
		"both go, nodes stay":                 {terms(own), weighted(own), &corev1.NodeAffinity{}, nil, "", []string{required, preferred, apart}},
		"required goes, others' preferred":    {terms(own), weighted(other), nil, nil, "", []string{required}},
		"others' required, preferred goes":    {terms(other), weighted(own), nil, nil, "", []string{preferred}},
		"a part of required goes":             {terms(own, other), nil, nil, nil, hard, nil},
		"a part of preferred goes":            {nil, weighted(own, other), nil, nil, soft, nil},
		"others' alone":                       {terms(other), weighted(other), nil, nil, "", nil},
		"others' in a list that is ours":      {terms(other), nil, nil, ownedBy(us, oursJSON), hard, nil},
		"ours and empty":                      {nil, nil, nil, ownedBy(us, oursJSON), "", []string{affinity}},
		"ours and empty beside nodes":         {nil, nil, &corev1.NodeAffinity{}, ownedBy(us, oursJSON), "", []string{apart}},
		"somebody's, and empty":               {nil, nil, nil, ownedBy(person, emptyJSON), "", nil},
		"a part of required, preferred whole": {terms(own, other), weighted(own), nil, nil, hard, []string{preferred}},
	} {
		live := manifest("console", ownedBy("installer", containersJSON), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: test.nodes, PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: test.required, PreferredDuringSchedulingIgnoredDuringExecution: test.preferred}}
			if test.owner != nil {
				test.owner(d)
			}
		})
		step := console.Decide(inputs(consoleIs(live))).Console
		if step.Intent == nil {
			t.Errorf("%s: %v", name, step.Result)
			continue
		}
		got := ""
		if is := step.Intent.Spec.Template.Spec.Affinity; is != nil {
			got = text(t, is)
		}
		if got != test.intent {
			t.Errorf("%s: intends %s\nwant %s", name, got, test.intent)
		}
		if diff := cmp.Diff(test.unset, step.Unset); diff != "" {
			t.Errorf("%s: unset (-want +got):\n%s", name, diff)
		}
	}
}
