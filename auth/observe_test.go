package auth_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
)

// rolledOut is a Deployment with the shape of the topology, of which n pods are available.
func rolledOut(d *appsv1.Deployment, n int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d.Generation = 2
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	for _, f := range change {
		f(d)
	}
	return d
}

// about is the result with the Deployment's name in its text.
func about(name string, result patch.Result) patch.Result {
	result.Message = strings.Replace(result.Message, "The Deployment", "The Deployment "+name, 1)
	return result
}

func TestObserveDeployments(t *testing.T) {
	const (
		shaping = "The Deployment is being shaped"
		rolling = "The Deployment is rolling out; if pods stay Pending or crash, look at their events and logs"
		stands  = "The Deployment has the shape of the topology, and all of its pods are available"
	)
	status := func(change func(*appsv1.DeploymentStatus)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { change(&d.Status) }
	}
	for name, test := range map[string]struct {
		mode    configv1.TopologyMode
		nodes   int32
		pods    int32
		change  func(*appsv1.Deployment)
		message string
	}{
		"one of one":                    {sr, 1, 1, nil, stands},
		"one of one, nodes not counted": {sr, 0, 1, nil, stands},
		"two of two":                    {dual, 2, 2, nil, stands},
		"three of three":                {ha, 3, 3, nil, stands},
		"three of three, unknown":       {unknown, 3, 3, nil, stands + `; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable`},
		"none of one":                   {sr, 1, 1, status(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 }), rolling},
		"not updated":                   {sr, 1, 1, status(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 0 }), rolling},
		"the old pod is still there":    {sr, 1, 1, status(func(s *appsv1.DeploymentStatus) { s.Replicas = 2 }), rolling},
		"not seen by its controller":    {sr, 1, 1, status(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }), rolling},
		"one of two":                    {dual, 2, 1, nil, rolling},
		"two of three":                  {ha, 3, 2, nil, rolling},
		"two, on one node":              {sr, 1, 2, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }, shaping},
		"replicas by default":           {sr, 1, 1, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, shaping},
		"not tolerating":                {sr, 1, 1, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = nil }, shaping},
		"stock anti-affinity on one node": {sr, 1, 1, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = antiAffinity(term(d.Spec.Template.Labels), term(nil))
		}, shaping},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostOf(t, test.mode, sr, test.nodes)
			change := []func(*appsv1.Deployment){}
			if test.change != nil {
				change = append(change, test.change)
			}
			in := deploymentInputs(string(test.mode), string(sr), test.nodes,
				rolledOut(shapedServer(t, server(), host), test.pods, change...), rolledOut(shapedAPIServer(t, apiServer(), host), test.pods, change...))
			want := patch.Result{State: patch.Progressing, Reason: "RollingOut", Message: test.message}
			if strings.HasPrefix(test.message, stands) {
				want = patch.Result{State: patch.InForce, Reason: "AsExpected", Message: test.message}
			}
			if got, want := auth.ObserveOAuthServer(in), about("openshift-authentication/oauth-openshift", want); got != want {
				t.Errorf("%v\nwant %v", got, want)
			}
			if got, want := auth.ObserveOAuthAPIServer(in), about("openshift-oauth-apiserver/apiserver", want); got != want {
				t.Errorf("%v\nwant %v", got, want)
			}
		})
	}
	for name, in := range map[string]auth.Inputs{
		"no Deployment": deploymentInputs("SingleReplica", "SingleReplica", 1),
		"no topology":   {OAuthServer: server(), OAuthAPIServer: apiServer()},
	} {
		want := patch.Result{State: patch.Progressing, Reason: "RollingOut", Message: shaping}
		if got := auth.ObserveOAuthServer(in); got != about("openshift-authentication/oauth-openshift", want) {
			t.Errorf("%s: %v", name, got)
		}
		if got := auth.ObserveOAuthAPIServer(in); got != about("openshift-oauth-apiserver/apiserver", want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A rollout whose deadline has passed fails, whatever the topology; one that is paused or complete does not.
func TestObserveStuck(t *testing.T) {
	deadline := func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	}
	available := func(n int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Status.AvailableReplicas = n }
	}
	for name, test := range map[string]struct {
		changes []func(*appsv1.Deployment)
		want    outcome
	}{
		"none serves":  {[]func(*appsv1.Deployment){deadline, available(0)}, outcome{patch.Failed, "RolloutStuck", "does not finish and no pod is available"}},
		"others serve": {[]func(*appsv1.Deployment){deadline, available(1)}, outcome{patch.Failed, "RolloutStuck", "does not finish, other pods still serve"}},
		"in time":      {[]func(*appsv1.Deployment){available(1)}, outcome{patch.Progressing, "RollingOut", "is rolling out"}},
		"complete":     {[]func(*appsv1.Deployment){deadline}, outcome{patch.InForce, "AsExpected", "all of its pods are available"}},
		"not shaped yet": {[]func(*appsv1.Deployment){deadline, available(0), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) }},
			outcome{patch.Progressing, "RollingOut", "is being shaped"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostOf(t, dual, ha, 2)
			in := deploymentInputs(string(dual), string(ha), 2,
				rolledOut(shapedServer(t, server(), host), 2, test.changes...), rolledOut(shapedAPIServer(t, apiServer(), host), 2, test.changes...))
			for _, got := range []patch.Result{auth.ObserveOAuthServer(in), auth.ObserveOAuthAPIServer(in)} {
				test.want.compare(t, &got)
			}
		})
	}
}

func TestObserveOverride(t *testing.T) {
	for name, test := range map[string]struct {
		in   auth.Inputs
		want outcome
	}{
		"set":        {overrideInputs(`{"` + key + `":true}`), outcome{patch.InForce, "AsExpected", "blocks upgrades"}},
		"not yet":    {overrideInputs(""), outcome{patch.Progressing, "RollingOut", "is being set"}},
		"false":      {overrideInputs(`{"` + key + `":false}`), outcome{patch.Progressing, "RollingOut", "is being set"}},
		"no object":  {auth.Inputs{}, outcome{patch.Progressing, "RollingOut", "is being set"}},
		"unreadable": {overrideInputs("{"), outcome{patch.Failed, "Invalid", "Unreadable unsupportedConfigOverrides"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := auth.ObserveOverride(test.in)
			test.want.compare(t, &got)
		})
	}
}
