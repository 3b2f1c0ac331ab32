package auth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
)

// What is written, by hand and not by the code under test.
const (
	overrideJSON = `{"kind":"Authentication","apiVersion":"operator.openshift.io/v1","metadata":{"name":"cluster"},` +
		`"spec":{"unsupportedConfigOverrides":{"` + key + `":true}}}`
	selectorJSON    = `"nodeSelector":{"kubernetes.io/os":"linux","node-role.kubernetes.io/master":""}`
	tolerationsJSON = `"tolerations":[{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":120},` +
		`{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
		`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]`
	serverHead    = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"oauth-openshift","namespace":"openshift-authentication"},"spec":`
	apiServerHead = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"apiserver","namespace":"openshift-oauth-apiserver"},"spec":`
	serverApart   = `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchLabels":` +
		`{"app":"oauth-openshift"}},"matchLabelKeys":["pod-template-hash"],"topologyKey":"kubernetes.io/hostname"}]}}`
	apiServerApart = `"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchLabels":` +
		`{"apiserver":"true","app":"openshift-oauth-apiserver"}},"topologyKey":"kubernetes.io/hostname"}]}}`
)

func specJSON(replicas, unavailable, surge, affinity string) string {
	if affinity != "" {
		affinity += ","
	}
	return `{"replicas":` + replicas + `,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":` + unavailable + `,"maxSurge":` + surge +
		`}},"template":{"spec":{` + affinity + selectorJSON + `,` + tolerationsJSON + `}}}}`
}

// canonical is JSON with sorted keys.
func canonical(t testing.TB, encoded string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(encoded), &v); err != nil {
		t.Fatalf("%v in %s", err, encoded)
	}
	return text(t, v)
}

func TestDecideTopologies(t *testing.T) {
	type wanted struct{ override, server, apiServer string }
	single := wanted{overrideJSON, serverHead + specJSON("1", "0", "1", ""), apiServerHead + specJSON("1", "1", "0", apiServerApart)}
	several := func(n, unavailable string) wanted {
		return wanted{"", serverHead + specJSON(n, unavailable, n, serverApart), apiServerHead + specJSON(n, "1", "0", apiServerApart)}
	}
	two, three := several("2", "1"), several("3", "2")
	for controlPlane, want := range map[configv1.TopologyMode]wanted{
		sr: single, dual: two, arbiter: two, ha: three, empty: three, unknown: three, external: {},
	} {
		for _, infrastructure := range allModes {
			for _, needed := range []bool{true, false} {
				in := deploymentInputs(string(controlPlane), string(infrastructure), 3, server(), apiServer())
				in.Authentication, in.ClusterVersion = liveAuthentication(""), running("4.8.0")
				if needed {
					in.ClusterVersion = running("4.7.0")
				}
				got := auth.Decide(in)
				wantOverride := want.override
				if !needed {
					wantOverride = ""
				}
				for what, pair := range map[string]struct {
					want   string
					intent any
					absent bool
					result *patch.Result
				}{
					"override":        {wantOverride, got.Override.Intent, got.Override.Intent == nil, got.Override.Result},
					"oauth-openshift": {want.server, got.OAuthServer.Intent, got.OAuthServer.Intent == nil, got.OAuthServer.Result},
					"oauth-apiserver": {want.apiServer, got.OAuthAPIServer.Intent, got.OAuthAPIServer.Intent == nil, got.OAuthAPIServer.Result},
				} {
					name := string(controlPlane) + "/" + string(infrastructure) + "/" + what
					if pair.absent != (pair.want == "") || pair.absent != (pair.result != nil) {
						t.Errorf("%s: intent %s, result %v; want %s", name, text(t, pair.intent), pair.result, pair.want)
						continue
					}
					if pair.absent {
						if pair.result.State != patch.NotNeeded {
							t.Errorf("%s: %v", name, pair.result)
						}
						continue
					}
					if diff := cmp.Diff(canonical(t, pair.want), canonical(t, text(t, pair.intent))); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
				if got.Override.Release || got.OAuthServer.Release || got.OAuthAPIServer.Release {
					t.Errorf("%q, %q: lets go of what is not ours: %+v", controlPlane, infrastructure, got)
				}
				if again := auth.Decide(in); text(t, again) != text(t, got) {
					t.Errorf("%q, %q: decided otherwise the second time", controlPlane, infrastructure)
				}
			}
		}
	}
}

// The override is taken off where it is no longer needed or wanted, and only where it is ours.
func TestDecideOverrideRelease(t *testing.T) {
	set := `{"` + key + `":true}`
	both := `{"` + key + `":true,"oauthConfig":{}}`
	us, oc := auth.FieldOwner, "oc"
	notNeeded := func(in *auth.Inputs) { in.ClusterVersion = running("4.20.3") }
	several := func(in *auth.Inputs) { cluster := clusterOf(ha, ha); in.Cluster = &cluster }
	optOut := func(in *auth.Inputs) {
		in.Authentication.Annotations = map[string]string{patch.OptOutAnnotation: "all"}
	}
	noTopology := func(in *auth.Inputs) { in.Cluster = nil }
	noObject := func(in *auth.Inputs) { in.Authentication = nil }
	unreadable := func(in *auth.Inputs) { in.Authentication.Spec.UnsupportedConfigOverrides.Raw = []byte("{") }
	for name, test := range map[string]struct {
		in      auth.Inputs
		change  func(*auth.Inputs)
		intent  bool
		release bool
		reason  string
	}{
		"ours, by key":                      {in: overrideInputs(set, authenticationOwnedBy(us, perKey)), intent: true},
		"ours, as one":                      {in: overrideInputs(set, authenticationOwnedBy(us, asOne)), intent: true},
		"release moved on, ours by key":     {overrideInputs(set, authenticationOwnedBy(us, perKey)), notNeeded, false, true, "NotNeeded"},
		"release moved on, ours as one":     {overrideInputs(set, authenticationOwnedBy(us, asOne)), notNeeded, false, true, "NotNeeded"},
		"topology moved on, ours":           {overrideInputs(set, authenticationOwnedBy(us, perKey)), several, false, true, "NotNeeded"},
		"topology moved on, ours and oc's":  {overrideInputs(set, authenticationOwnedBy(us, perKey), authenticationOwnedBy(oc, perKey)), several, false, true, "NotNeeded"},
		"topology moved on, with others":    {overrideInputs(both, authenticationOwnedBy(us, perKey), authenticationOwnedBy(oc, perOther)), several, false, true, "NotNeeded"},
		"topology moved on, oc's":           {overrideInputs(set, authenticationOwnedBy(oc, perKey)), several, false, false, "NotNeeded"},
		"topology moved on, oc's as one":    {overrideInputs(both, authenticationOwnedBy(oc, asOne)), several, false, false, "NotNeeded"},
		"opted out, ours":                   {overrideInputs(set, authenticationOwnedBy(us, perKey)), optOut, false, true, "OptedOut"},
		"opted out, oc's":                   {overrideInputs(set, authenticationOwnedBy(oc, perKey)), optOut, false, false, "OptedOut"},
		"topology forgotten, ours":          {overrideInputs(set, authenticationOwnedBy(us, perKey)), noTopology, false, false, "WaitingForInfrastructure"},
		"unreadable":                        {overrideInputs(set, authenticationOwnedBy(us, perKey)), unreadable, false, false, "Invalid"},
		"no object":                         {overrideInputs(set), noObject, false, false, "WaitingForObject"},
		"oc's true needs none of ours":      {overrideInputs(set, authenticationOwnedBy(oc, perKey)), nil, false, false, "OverrideSetByOther"},
		"oc replaced all, ours is gone":     {overrideInputs(both, authenticationOwnedBy(oc, asOne)), nil, false, false, "OverrideSetByOther"},
		"oc took the key, status is ours":   {overrideInputs(set, authenticationOwnedBy(oc, perKey), statusIsOurs), several, false, false, "NotNeeded"},
		"oc says false, we have a leftover": {overrideInputs(`{"`+key+`":false}`, authenticationOwnedBy(oc, perKey), authenticationOwnedBy(us, `{"f:spec":{"f:logLevel":{}}}`)), nil, false, true, "FieldOwnedByOther"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(&test.in)
			}
			got := auth.DecideOverride(test.in)
			reason := ""
			if got.Result != nil {
				reason = got.Result.Reason
			}
			if (got.Intent != nil) != test.intent || got.Release != test.release || reason != test.reason {
				t.Errorf("intent %t, release %t, %q; want %t, %t, %q", got.Intent != nil, got.Release, reason, test.intent, test.release, test.reason)
			}
		})
	}
}

// statusIsOurs is the entry of the sub-conditions that the module writes.
func statusIsOurs(a *operatorv1.Authentication) {
	e := entry(auth.FieldOwner, "Apply", `{"f:status":{"f:conditions":{}}}`)
	e.Subresource = "status"
	a.ManagedFields = append(a.ManagedFields, e)
}

func TestDecideDeploymentRelease(t *testing.T) {
	replicas := `{"f:spec":{"f:replicas":{}}}`
	strategy := `{"f:spec":{"f:strategy":{"f:type":{}}}}`
	two := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }
	optOut := func(d *appsv1.Deployment) { d.Annotations = map[string]string{patch.OptOutAnnotation: "auth"} }
	ours, theirs := deploymentOwnedBy(auth.FieldOwner, strategy), deploymentOwnedBy("oc", replicas)
	for name, test := range map[string]struct {
		in              auth.Inputs
		intent, release bool
	}{
		"ours":                       {deploymentInputs("SingleReplica", "SingleReplica", 1, server(ours)), true, false},
		"blocked":                    {deploymentInputs("SingleReplica", "SingleReplica", 1, server(theirs, two)), false, false},
		"blocked, some of it ours":   {deploymentInputs("SingleReplica", "SingleReplica", 1, server(theirs, two, ours)), false, true},
		"opted out, ours":            {deploymentInputs("SingleReplica", "SingleReplica", 1, server(optOut, ours)), false, true},
		"opted out, not ours":        {deploymentInputs("SingleReplica", "SingleReplica", 1, server(optOut)), false, false},
		"external, ours":             {deploymentInputs("External", "SingleReplica", 1, server(ours)), false, true},
		"no node, ours":              {deploymentInputs("HighlyAvailable", "SingleReplica", 0, server(ours)), false, false},
		"topology not known, ours":   {auth.Inputs{OAuthServer: server(ours)}, false, false},
		"another object, not looked": {auth.Inputs{OAuthServer: apiServer(ours)}, false, false},
	} {
		got := auth.Decide(test.in).OAuthServer
		if (got.Intent != nil) != test.intent || got.Release != test.release || (got.Intent == nil) != (got.Result != nil) {
			t.Errorf("%s: intent %t, release %t, %v; want %t, %t", name, got.Intent != nil, got.Release, got.Result, test.intent, test.release)
		}
	}
}

// A list of anti-affinity that must go is named where an apply of the shape would not take it along.
func TestDecideUnset(t *testing.T) {
	required := `{"f:spec":{"f:template":{"f:spec":{"f:affinity":{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`
	preferred := strings.Replace(required, "required", "preferred", 1)
	apart := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Affinity = antiAffinity(term(serverLabels)) }
	prefers := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 7, PodAffinityTerm: term(serverLabels)}},
		}}
	}
	for name, test := range map[string]struct {
		change []func(*appsv1.Deployment)
		mode   configv1.TopologyMode
		want   []string
	}{
		"none":                    {nil, sr, nil},
		"ours":                    {[]func(*appsv1.Deployment){apart, deploymentOwnedBy(auth.FieldOwner, required)}, sr, nil},
		"nobody's":                {[]func(*appsv1.Deployment){apart}, sr, []string{auth.FieldRequiredAntiAffinity}},
		"somebody's":              {[]func(*appsv1.Deployment){apart, deploymentOwnedBy("stock", required)}, sr, []string{auth.FieldRequiredAntiAffinity}},
		"ours and somebody's":     {[]func(*appsv1.Deployment){apart, deploymentOwnedBy("stock", required), deploymentOwnedBy(auth.FieldOwner, required)}, sr, []string{auth.FieldRequiredAntiAffinity}},
		"somebody's, replaced":    {[]func(*appsv1.Deployment){apart, deploymentOwnedBy("stock", required)}, ha, nil},
		"preferred, nobody's":     {[]func(*appsv1.Deployment){prefers}, sr, []string{auth.FieldPreferredAntiAffinity}},
		"preferred, in all modes": {[]func(*appsv1.Deployment){prefers, deploymentOwnedBy("stock", preferred)}, ha, []string{auth.FieldPreferredAntiAffinity}},
	} {
		in := deploymentInputs(string(test.mode), string(test.mode), 3, server(test.change...))
		in.ForceConflicts = true
		got := auth.Decide(in).OAuthServer
		if got.Intent == nil {
			t.Errorf("%s: %v", name, got.Result)
		}
		if diff := cmp.Diff(test.want, got.Unset); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// One that is blocked stops no other, and the arguments are only read.
func TestDecideIndependent(t *testing.T) {
	in := deploymentInputs("SingleReplica", "SingleReplica", 1,
		server(deploymentOwnedBy("stock", `{"f:spec":{"f:replicas":{}}}`), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }),
		apiServer(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = antiAffinity(term(map[string]string{"a": "b"}))
		}))
	in.Authentication, in.Override = liveAuthentication("[]"), auth.OverrideAlways
	before := text(t, in.Authentication) + text(t, in.OAuthServer) + text(t, in.OAuthAPIServer)
	got := auth.Decide(in)
	if got.Override.Result == nil || got.Override.Result.State != patch.Failed || got.OAuthServer.Result == nil || got.OAuthServer.Result.State != patch.Blocked ||
		got.OAuthAPIServer.Intent == nil {
		t.Errorf("%s", text(t, got))
	}
	// A term about other pods travels with ours, since the list is one value to the API server.
	terms := got.OAuthAPIServer.Intent.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 2 || terms[0].LabelSelector.MatchLabels["a"] != "b" || *terms[1].TopologyKey != corev1.LabelHostname {
		t.Errorf("terms: %s", text(t, terms))
	}
	if after := text(t, in.Authentication) + text(t, in.OAuthServer) + text(t, in.OAuthAPIServer); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// Standing back from a Deployment that somebody else shapes is right; that its rollout is stuck is reported all the same, and what was ours
// still goes. Nothing else that keeps the module away speaks of the rollout.
func TestDecideStandingBackFromStuckRollout(t *testing.T) {
	stuck := func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	}
	stock := func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](2)
		signed(d, "authentication-operator", `{"f:spec":{"f:replicas":{}}}`)
	}
	ours := func(d *appsv1.Deployment) { signed(d, auth.FieldOwner, `{"f:spec":{"f:strategy":{"f:type":{}}}}`) }
	optOut := func(d *appsv1.Deployment) { d.Annotations = map[string]string{patch.OptOutAnnotation: "auth"} }
	for name, test := range map[string]struct {
		changes []func(*appsv1.Deployment)
		want    outcome
		release bool
	}{
		"stuck":                {[]func(*appsv1.Deployment){stock, stuck}, outcome{patch.Failed, "RolloutStuck", "delete the old one"}, false},
		"stuck, ours goes":     {[]func(*appsv1.Deployment){stock, stuck, ours}, outcome{patch.Failed, "RolloutStuck", "delete the old one"}, true},
		"on its way":           {[]func(*appsv1.Deployment){stock}, outcome{patch.Blocked, "FieldOwnedByOther", "authentication-operator"}, false},
		"stuck, but opted out": {[]func(*appsv1.Deployment){stock, stuck, optOut}, outcome{patch.OptedOut, "OptedOut", "keeps this module away"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			decision := auth.Decide(deploymentInputs("SingleReplica", "SingleReplica", 1, server(test.changes...), apiServer(test.changes...)))
			for operand, got := range map[string]auth.DeploymentDecision{"oauth-openshift": decision.OAuthServer, "oauth-apiserver": decision.OAuthAPIServer} {
				test.want.compare(t, got.Result)
				if got.Intent != nil || got.Release != test.release {
					t.Errorf("%s: intent %v, release %v; want none and %v", operand, got.Intent, got.Release, test.release)
				}
			}
		})
	}
}

// The override over all combinations of what it depends on, against the rule in other words: the first row that fits decides.
func TestDecideOverrideTable(t *testing.T) {
	type situation struct {
		mode                   configv1.TopologyMode
		policy                 auth.OverridePolicy
		release                string
		value                  string // of the override: "", "true", "false" or "broken"
		ours, theirs, optedOut bool
	}
	needed := func(s situation) bool {
		return s.mode == sr && (s.policy == auth.OverrideAlways || (s.policy != auth.OverrideNever && s.release == "4.7.13"))
	}
	type what struct{ intent, release bool }
	rows := []struct {
		when func(situation) bool
		then func(situation) what
		why  string
	}{
		{func(s situation) bool { return s.optedOut }, func(s situation) what { return what{false, s.ours} }, "a person keeps the module away"},
		{func(s situation) bool { return s.value == "broken" }, func(situation) what { return what{} }, "nobody knows what was wanted"},
		{func(s situation) bool { return !needed(s) }, func(s situation) what { return what{false, s.ours} }, "the topology or a person needs none"},
		{func(s situation) bool { return s.value == "true" && s.ours }, func(situation) what { return what{true, false} }, "ours stays"},
		{func(s situation) bool { return s.value == "true" }, func(situation) what { return what{} }, "set by somebody else"},
		{func(s situation) bool { return s.value == "false" && (s.theirs || !s.ours) }, func(s situation) what { return what{false, s.ours} }, "a person's false"},
		{func(situation) bool { return true }, func(situation) what { return what{true, false} }, "set it"},
	}
	var tried int
	for _, mode := range allModes {
		for _, policy := range []auth.OverridePolicy{"", auth.OverrideAuto, auth.OverrideAlways, auth.OverrideNever} {
			for _, release := range []string{"", "4.7.13", "4.14.0"} {
				for _, value := range []string{"", "true", "false", "broken"} {
					for bits := range 8 {
						s := situation{mode, policy, release, value, bits&1 != 0, bits&2 != 0, bits&4 != 0}
						if value == "" && (s.ours || s.theirs) {
							continue // nobody owns what is not there
						}
						raw := map[string]string{"": "", "true": `{"` + key + `":true}`, "false": `{"` + key + `":false}`, "broken": `{"` + key + `":"maybe"}`}[value]
						live := liveAuthentication(raw)
						if s.ours {
							signed(live, auth.FieldOwner, perKey)
						}
						if s.theirs {
							signed(live, "somebody", perKey)
						}
						if s.optedOut {
							live.Annotations = map[string]string{patch.OptOutAnnotation: "auth"}
						}
						cluster := clusterOf(mode, ha)
						in := auth.Inputs{Cluster: &cluster, Authentication: live, Override: policy}
						if release != "" {
							in.ClusterVersion = running(release)
						}
						decision := auth.DecideOverride(in)
						got := what{decision.Intent != nil, decision.Release}
						for _, row := range rows {
							if row.when(s) {
								if want := row.then(s); got != want {
									t.Errorf("%+v: %+v, want %+v (%s); %v", s, got, want, row.why, decision.Result)
								}
								break
							}
						}
						tried++
					}
				}
			}
		}
	}
	if tried != 7*4*3*(3*8+2) {
		t.Errorf("%d combinations were tried", tried)
	}
}
