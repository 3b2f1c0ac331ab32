package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
)

// The order is part of the behavior: an opt-out is honored before anything is known, and what somebody else owns is no obstacle
// where nothing is to be set.
func TestChecksOrder(t *testing.T) {
	names := func(chain patch.Chain[auth.Inputs]) (out []string) {
		for _, check := range chain {
			out = append(out, check.Name)
		}
		return out
	}
	override := []string{"Valid", "Exists", "OptedOut", "OverrideReadable", "TopologyKnown", "OverrideNeeded", "OverrideFree"}
	if diff := cmp.Diff(override, names(auth.OverrideChecks())); diff != "" {
		t.Errorf("override (-want +got):\n%s", diff)
	}
	deployment := []string{"Valid", "Exists", "OptedOut", "TopologyKnown", "ControlPlaneInCluster", "NodesKnown", "ShapeFree"}
	if diff := cmp.Diff(deployment, names(auth.OAuthServerChecks())); diff != "" {
		t.Errorf("oauth-openshift (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(deployment, names(auth.OAuthAPIServerChecks())); diff != "" {
		t.Errorf("oauth-apiserver (-want +got):\n%s", diff)
	}
}

// outcome is what a chain should say: message is a part of the text. No reason is nothing to say.
type outcome struct {
	state   patch.State
	reason  string
	message string
}

func (want outcome) compare(t *testing.T, got *patch.Result) {
	t.Helper()
	switch {
	case want.reason == "" && got != nil:
		t.Errorf("%v, want nothing to say", got)
	case want.reason != "" && got == nil:
		t.Errorf("nothing to say, want %s", want.reason)
	case got != nil && (got.State != want.state || got.Reason != want.reason || want.message == "" || !strings.Contains(got.Message, want.message)):
		t.Errorf("%v\nwant %s (%s): ...%s...", got, want.state, want.reason, want.message)
	}
}

func TestOverrideChecks(t *testing.T) {
	with := func(in auth.Inputs, change func(*auth.Inputs)) auth.Inputs {
		change(&in)
		return in
	}
	set := `{"` + key + `":true}`
	off := `{"` + key + `":false}`
	optOut := func(a *operatorv1.Authentication) { a.Annotations = map[string]string{patch.OptOutAnnotation: "auth"} }
	noTopology := func(in *auth.Inputs) { in.Cluster = nil }
	notNeeded := func(in *auth.Inputs) { in.ClusterVersion = running("4.8.2") }
	topologies := func(controlPlane, infrastructure string) func(*auth.Inputs) {
		return func(in *auth.Inputs) {
			cluster := clusterOf(modeOf(controlPlane), modeOf(infrastructure))
			in.Cluster = &cluster
		}
	}
	deleted := func(a *operatorv1.Authentication) { a.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }
	const notSingle = "The control-plane topology is not SingleReplica: the OAuth servers need no override"
	blocked := func(field, managers string) outcome {
		return outcome{patch.Blocked, "FieldOwnedByOther", field + " is owned by " + managers + " and stays as it is; "}
	}
	const whole = ".spec.unsupportedConfigOverrides"

	for name, test := range map[string]struct {
		in   auth.Inputs
		want outcome
	}{
		"absent":                  {overrideInputs(""), outcome{}},
		"null":                    {overrideInputs("null"), outcome{}},
		"null that somebody owns": {overrideInputs("null", authenticationOwnedBy("cluster-authentication-operator", asOne)), outcome{}},
		"an empty object":         {overrideInputs("{}", authenticationOwnedBy("oc", asOne)), outcome{}},
		"another object":          {overrideInputs("", func(a *operatorv1.Authentication) { a.Name = "x" }), outcome{patch.Failed, "Invalid", "not those of a cluster"}},
		"none":                    {auth.Inputs{}, outcome{patch.Waiting, "WaitingForObject", "There is no configuration"}},
		"being deleted":           {overrideInputs("", deleted), outcome{patch.Waiting, "WaitingForObject", "is being deleted"}},
		"opted out":               {overrideInputs(set, optOut), outcome{patch.OptedOut, "OptedOut", "keeps this module away"}},
		"opted out of nonsense, before the topology is known": {with(overrideInputs("{", optOut), noTopology), outcome{patch.OptedOut, "OptedOut", "keeps this module away"}},
		"unreadable document": {overrideInputs("{"), outcome{patch.Failed, "Invalid", "Unreadable unsupportedConfigOverrides: spec.unsupportedConfigOverrides: "}},
		"unreadable where not needed": {with(overrideInputs(`{"`+key+`":"maybe"}`), notNeeded),
			outcome{patch.Failed, "Invalid", `spec.unsupportedConfigOverrides.` + key + ` is "maybe"; want true or false`}},
		"no topology":        {with(overrideInputs(""), noTopology), outcome{patch.Waiting, "WaitingForInfrastructure", "There is no Infrastructure object yet"}},
		"highly available":   {with(overrideInputs(""), topologies("HighlyAvailable", "SingleReplica")), outcome{patch.NotNeeded, "NotNeeded", notSingle}},
		"two nodes":          {with(overrideInputs(""), topologies("DualReplica", "SingleReplica")), outcome{patch.NotNeeded, "NotNeeded", notSingle}},
		"arbiter":            {with(overrideInputs(""), topologies("HighlyAvailableArbiter", "SingleReplica")), outcome{patch.NotNeeded, "NotNeeded", notSingle}},
		"external, single":   {with(overrideInputs(""), topologies("External", "SingleReplica")), outcome{patch.NotNeeded, "NotNeeded", notSingle}},
		"empty":              {with(overrideInputs(""), topologies("", "")), outcome{patch.NotNeeded, "NotNeeded", notSingle}},
		"unknown":            {with(overrideInputs(""), topologies("Quantum", "SingleReplica")), outcome{patch.NotNeeded, "NotNeeded", notSingle + `; status.controlPlaneTopology has the unknown value "Quantum"`}},
		"single, workers":    {with(overrideInputs(""), topologies("SingleReplica", "HighlyAvailable")), outcome{}},
		"not needed":         {with(overrideInputs(""), notNeeded), outcome{patch.NotNeeded, "NotNeeded", "This release runs the OAuth servers on one control-plane node by the topology alone"}},
		"not needed, is set": {with(overrideInputs(set, authenticationOwnedBy("oc", perKey)), notNeeded), outcome{patch.NotNeeded, "NotNeeded", "topology alone. The override " + key + " is deprecated: it is honored"}},
		"several, is false":  {with(overrideInputs(off), topologies("HighlyAvailable", "HighlyAvailable")), outcome{patch.NotNeeded, "NotNeeded", notSingle + ". The override " + key + " is deprecated and false"}},

		"somebody's true, by key":        {overrideInputs(set, authenticationOwnedBy("oc", perKey)), outcome{patch.NotNeeded, "OverrideSetByOther", "deprecated: it is honored"}},
		"somebody's true, as one":        {overrideInputs(set, authenticationOwnedBy("oc", asOne)), outcome{patch.NotNeeded, "OverrideSetByOther", "Somebody else has set the override"}},
		"nobody's true":                  {overrideInputs(set), outcome{patch.NotNeeded, "OverrideSetByOther", "Somebody else"}},
		"ours, by key":                   {overrideInputs(set, authenticationOwnedBy(auth.FieldOwner, perKey)), outcome{}},
		"ours, as one":                   {overrideInputs(set, authenticationOwnedBy(auth.FieldOwner, asOne)), outcome{}},
		"ours and somebody's":            {overrideInputs(set, authenticationOwnedBy(auth.FieldOwner, perKey), authenticationOwnedBy("oc", perKey)), outcome{}},
		"somebody's false, by key":       {overrideInputs(off, authenticationOwnedBy("oc", perKey)), blocked(whole+"."+key, `"oc"`)},
		"somebody's false, as one":       {overrideInputs(off, authenticationOwnedBy("oc", asOne)), blocked(whole+"."+key, `"oc"`)},
		"somebody's false, force or not": {with(overrideInputs(off, authenticationOwnedBy("oc", perKey)), func(in *auth.Inputs) { in.ForceConflicts = true }), blocked(whole+"."+key, `"oc"`)},
		"nobody's false":                 {overrideInputs(off), blocked(whole+"."+key, `"before-first-apply"`)},
		"false, no ownership at all":     {overrideInputs(off, func(a *operatorv1.Authentication) { a.ManagedFields = nil }), blocked(whole+"."+key, `"before-first-apply"`)},
		"ours alone, but false":          {overrideInputs(off, authenticationOwnedBy(auth.FieldOwner, perKey)), outcome{}},

		"others by key":                      {overrideInputs(`{"oauthConfig":{}}`, authenticationOwnedBy("oc", perOther)), outcome{}},
		"others by key, an empty map before": {overrideInputs(`{"oauthConfig":{}}`, authenticationOwnedBy("operator", asOne), authenticationOwnedBy("oc", perOther)), outcome{}},
		"others as one":                      {overrideInputs(`{"oauthConfig":{}}`, authenticationOwnedBy("oc", asOne)), blocked(whole, `"oc"`)},
		"others as one, force or not":        {with(overrideInputs(`{"oauthConfig":{}}`, authenticationOwnedBy("oc", asOne)), func(in *auth.Inputs) { in.ForceConflicts = true }), blocked(whole, `"oc"`)},
		"others that nobody signed":          {overrideInputs(`{"oauthConfig":{}}`), blocked(whole, `"before-first-apply"`)},
		"others, no ownership at all":        {overrideInputs(`{"oauthConfig":{}}`, func(a *operatorv1.Authentication) { a.ManagedFields = nil }), blocked(whole, `"before-first-apply"`)},
		"others in YAML, as one":             {overrideInputs("oauthConfig: {}", authenticationOwnedBy("oc", asOne)), blocked(whole, `"oc"`)},
		"unreadable ownership":               {overrideInputs("", authenticationOwnedBy("oc", `{"f:spec":7}`)), outcome{patch.Failed, "Invalid", `Unreadable metadata.managedFields: manager "oc"`}},
		"unreadable where not needed by":     {with(overrideInputs("", authenticationOwnedBy("oc", `{"f:spec":7}`)), notNeeded), outcome{patch.NotNeeded, "NotNeeded", "topology alone"}},
	} {
		t.Run(name, func(t *testing.T) { test.want.compare(t, auth.OverrideChecks().Run(test.in)) })
	}
}

func deploymentInputs(controlPlane, infrastructure string, nodes int32, d ...*appsv1.Deployment) auth.Inputs {
	cluster := clusterOf(modeOf(controlPlane), modeOf(infrastructure))
	in := auth.Inputs{Cluster: &cluster}
	for range nodes {
		in.ControlPlaneNodes = append(in.ControlPlaneNodes, controlPlaneNode())
	}
	for _, d := range d {
		if d.Name == "oauth-openshift" {
			in.OAuthServer = d
		} else {
			in.OAuthAPIServer = d
		}
	}
	return in
}

func TestDeploymentChecks(t *testing.T) {
	with := func(in auth.Inputs, change func(*auth.Inputs)) auth.Inputs {
		change(&in)
		return in
	}
	forced := func(in *auth.Inputs) { in.ForceConflicts = true }
	closed := func(in *auth.Inputs) {
		for i := range in.ControlPlaneNodes {
			in.ControlPlaneNodes[i].Spec.Taints = []corev1.Taint{{Key: "example.com/reserved", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	noTopology := func(in *auth.Inputs) { in.Cluster = nil }
	optOut := func(d *appsv1.Deployment) { d.Annotations = map[string]string{patch.OptOutAnnotation: "console, auth"} }
	deleted := func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }
	owned := func(manager, fields string, change func(*appsv1.Deployment)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			signed(d, manager, fields)
			change(d)
		}
	}
	pods := func(n int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(n) }
	}
	inPod := func(fields string) string { return `{"f:spec":{"f:template":{"f:spec":{` + fields + `}}}}` }
	replicas := `{"f:spec":{"f:replicas":{}}}`
	apartFields := inPod(`"f:affinity":{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{}}}`)
	apart := func(terms ...corev1.PodAffinityTerm) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Affinity = antiAffinity(terms...) }
	}
	preferredFields := inPod(`"f:affinity":{"f:podAntiAffinity":{"f:preferredDuringSchedulingIgnoredDuringExecution":{}}}`)
	preferred := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 7, PodAffinityTerm: term(serverLabels)}},
		}}
	}
	quarter := func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromString("25%")),
		}}
	}
	blocked := func(field, manager string) outcome {
		return outcome{patch.Blocked, "FieldOwnedByOther", field + ` of the Deployment openshift-authentication/oauth-openshift is owned by "` + manager +
			`" and stays as it is, and so does the rest of it; to have it follow the topology, remove the field there or start with --force-conflicts`}
	}
	const required = ".spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	const optional = ".spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	single := func(d ...*appsv1.Deployment) auth.Inputs {
		return deploymentInputs("SingleReplica", "SingleReplica", 1, d...)
	}

	for name, test := range map[string]struct {
		in   auth.Inputs
		want outcome
	}{
		"nobody's":      {single(server()), outcome{}},
		"another":       {single(server(func(d *appsv1.Deployment) { d.Namespace = "x" })), outcome{patch.Failed, "Invalid", "not those of a cluster"}},
		"none":          {single(apiServer()), outcome{patch.Waiting, "WaitingForObject", "There is no Deployment openshift-authentication/oauth-openshift;"}},
		"being deleted": {single(server(deleted)), outcome{patch.Waiting, "WaitingForObject", "is being deleted"}},
		"opted out":     {with(single(server(optOut)), noTopology), outcome{patch.OptedOut, "OptedOut", "keeps this module away"}},
		"no topology":   {with(single(server()), noTopology), outcome{patch.Waiting, "WaitingForInfrastructure", "no Infrastructure object yet"}},
		"external":      {deploymentInputs("External", "SingleReplica", 0, server()), outcome{patch.NotNeeded, "ExternalControlPlane", "The control plane is external"}},

		"no node, single":           {deploymentInputs("SingleReplica", "SingleReplica", 0, server()), outcome{}},
		"no node, two":              {deploymentInputs("DualReplica", "HighlyAvailable", 0, server()), outcome{}},
		"no node, highly available": {deploymentInputs("HighlyAvailable", "HighlyAvailable", 0, server()), outcome{patch.Waiting, "WaitingForNodes", "There is no node with the master role yet"}},
		"no node, unknown":          {deploymentInputs("Quantum", "HighlyAvailable", 0, server()), outcome{patch.Waiting, "WaitingForNodes", "There is no node with the master role yet"}},
		"no node that is open":      {with(deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server()), closed), outcome{patch.Waiting, "WaitingForNodes", "that takes the pods"}},

		"somebody's replicas":            {single(server(owned("stock", replicas, pods(2)))), blocked(".spec.replicas", "stock")},
		"somebody's equal replicas":      {single(server(owned("stock", replicas, pods(1)))), outcome{}},
		"our replicas":                   {single(server(owned(auth.FieldOwner, replicas, pods(3)))), outcome{}},
		"nobody's replicas":              {single(server(pods(3))), outcome{}},
		"forced replicas":                {with(single(server(owned("stock", replicas, pods(2)))), forced), outcome{}},
		"somebody's strategy":            {single(server(owned("stock", `{"f:spec":{"f:strategy":{"f:type":{}}}}`, quarter))), blocked(".spec.strategy", "stock")},
		"somebody's node selector":       {single(server(owned("stock", inPod(`"f:nodeSelector":{}`), func(*appsv1.Deployment) {}))), blocked(".spec.template.spec.nodeSelector", "stock")},
		"somebody's tolerations":         {single(server(owned("stock", inPod(`"f:tolerations":{}`), func(*appsv1.Deployment) {}))), blocked(".spec.template.spec.tolerations", "stock")},
		"somebody's containers":          {single(server(owned("stock", inPod(`"f:containers":{}`), func(*appsv1.Deployment) {}))), outcome{}},
		"somebody's anti-affinity":       {single(server(owned("stock", apartFields, apart(term(serverLabels))))), blocked(required, "stock")},
		"by force":                       {with(single(server(owned("stock", apartFields, apart(term(serverLabels))))), forced), outcome{}},
		"somebody's preference":          {deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server(owned("stock", preferredFields, preferred))), blocked(optional, "stock")},
		"by force, preferred":            {with(deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server(owned("stock", preferredFields, preferred))), forced), outcome{}},
		"our anti-affinity":              {single(server(owned(auth.FieldOwner, apartFields, apart(term(serverLabels))))), outcome{}},
		"somebody's about other pods":    {single(server(owned("stock", apartFields, apart(term(map[string]string{"app": "etcd"}))))), outcome{}},
		"somebody's, one of two goes":    {single(server(owned("stock", apartFields, apart(term(map[string]string{"app": "etcd"}), term(serverLabels))))), blocked(required, "stock")},
		"forced, one of two goes":        {with(single(server(owned("stock", apartFields, apart(term(map[string]string{"app": "etcd"}), term(serverLabels))))), forced), outcome{}},
		"somebody's, where ours differs": {deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server(owned("stock", apartFields, apart(term(serverLabels))))), blocked(required, "stock")},
		"forced, where ours differs":     {with(deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server(owned("stock", apartFields, apart(term(serverLabels))))), forced), outcome{}},
		"no ownership at all":            {single(server(func(d *appsv1.Deployment) { d.ManagedFields = nil })), blocked(".spec.replicas", "before-first-apply")},
		"unreadable ownership":           {single(server(deploymentOwnedBy("stock", `{"f:spec":7}`))), outcome{patch.Failed, "Invalid", `Unreadable metadata.managedFields: manager "stock"`}},
	} {
		t.Run(name, func(t *testing.T) { test.want.compare(t, auth.OAuthServerChecks().Run(test.in)) })
	}

	// What is different for the other Deployment: it keeps its anti-affinity on one node too.
	for name, test := range map[string]struct {
		in   auth.Inputs
		want outcome
	}{
		"nobody's":                 {single(apiServer()), outcome{}},
		"none":                     {single(server()), outcome{patch.Waiting, "WaitingForObject", "There is no Deployment openshift-oauth-apiserver/apiserver;"}},
		"opted out":                {single(apiServer(optOut), server()), outcome{patch.OptedOut, "OptedOut", "keeps this module away"}},
		"somebody's anti-affinity": {single(apiServer(owned("stock", apartFields, apart(term(apiServerLabels))))), outcome{}},
		"somebody's replicas": {single(apiServer(owned("stock", replicas, pods(2)))),
			outcome{patch.Blocked, "FieldOwnedByOther", `.spec.replicas of the Deployment openshift-oauth-apiserver/apiserver is owned by "stock"`}},
	} {
		t.Run("oauth-apiserver/"+name, func(t *testing.T) { test.want.compare(t, auth.OAuthAPIServerChecks().Run(test.in)) })
	}
}
