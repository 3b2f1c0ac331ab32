// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

func router(t testing.TB, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name, d.Generation = ingress.RouterNamespace, ingress.RouterName, 2
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}
	d.Spec.Template.Spec.Tolerations = append([]corev1.Toleration{{Key: "extra", Operator: corev1.TolerationOpExists}}, fixture.Pinned(t).Tolerations...)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	for _, f := range change {
		f(d)
	}
	return d
}

func tolerationsOf(t testing.TB) []corev1.Toleration { return fixture.Pinned(t).Tolerations }

func TestObserve(t *testing.T) {
	const (
		patching   = "RouterRollingOut: The default IngressController is being patched"
		making     = "RouterRollingOut: The default IngressController is pinned; waiting for the ingress operator to make the router Deployment"
		pinning    = "RouterRollingOut: The default IngressController is pinned; waiting for the ingress operator to pin the router Deployment"
		rolling    = "RouterRollingOut: The router on the control plane is rolling out; if a pod stays Pending, look at its events"
		incomplete = "RouterRollingOut: Not every pod of the router on the control plane is available; if one stays Pending, look at its events"
		paused     = "RouterRollingOut: The rollout of the router is paused; resume it with oc rollout resume"
		inForce    = "AsExpected: The router is pinned to the control plane"
		lacks      = `; .spec.nodePlacement of "oc" does not tolerate the taint node-role.kubernetes.io/master:NoSchedule: ` +
			"add that to its tolerations, or the router is Pending where the control plane has the taint, as with day-1 workers"

		disagree = "; the infrastructure topology decided, defaultPlacement is Workers, the ingress operator's default " +
			"(--placement=defaultPlacement lets it decide)"
	)
	const master = "node-role.kubernetes.io/master"
	type change = func(*appsv1.Deployment)
	on := func(change ...change) decision.Inputs {
		in := inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Pinned(t)))
		in.Router = router(t, change...)
		return in
	}
	placedAs := func(placement func(*operatorv1.IngressController), change ...change) decision.Inputs {
		in := on(change...)
		placement(in.IngressController)
		return in
	}
	onWorkers := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/worker": ""}
	}
	tolerations := func(n int) change {
		return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = d.Spec.Template.Spec.Tolerations[:n] }
	}
	persons := func(tolerations []corev1.Toleration, change ...change) decision.Inputs {
		in := on(append(change, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = tolerations })...)
		in.IngressController.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: fixture.Pinned(t).NodeSelector, Tolerations: tolerations}
		ownedBy("oc", placedJSON)(in.IngressController)
		return in
	}
	infra, unreadable := fixture.Labelled(fixture.Expressing("node-role.kubernetes.io/infra", "In", "")), fixture.Labelled(fixture.Expressing("a", "Exists"))

	for name, test := range map[string]struct {
		in   decision.Inputs
		want string
	}{
		"no IngressController":                    {decision.Inputs{}, patching},
		"not placed yet":                          {placedAs(fixture.Placed(nil)), patching},
		"placed elsewhere":                        {placedAs(fixture.Placed(fixture.Moved())), patching},
		"placed elsewhere by an expression":       {placedAs(infra), patching},
		"placed by an expression":                 {placedAs(fixture.Placed(pinnedByExpression(t))), inForce},
		"placed by an expression, not yet":        {placedAs(fixture.Placed(pinnedByExpression(t)), onWorkers), pinning},
		"unsupported selector":                    {placedAs(unreadable), "Invalid: The inputs cannot be understood: " + ingress.ErrNodeSelector.Error()},
		"unsupported selector, forced":            {with(placedAs(unreadable), forced), patching},
		"a person's, without tolerations":         {persons(nil), inForce + lacks},
		"a person's, tolerating the master taint": {persons(tolerationsOf(t)[:1]), inForce},
		"a person's, tolerating everything":       {persons([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}), inForce},
		"a person's, tolerating another role":     {persons(tolerationsOf(t)[1:]), inForce + lacks},
		"a person's, Pending":                     {persons(nil, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), incomplete + lacks},
		"a person's, not yet":                     {persons(nil, onWorkers), pinning},
		"a person's, forced":                      {with(persons(nil), forced), patching},
		"no router":                               {with(on(), func(in *decision.Inputs) { in.Router = nil }), making},
		"no selector":                             {on(func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = nil }), pinning},
		"on the workers":                          {on(onWorkers), pinning},
		"another value of the label":              {on(func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector[master] = "no" }), pinning},
		"no tolerations":                          {on(tolerations(0)), pinning},
		"one of the tolerations":                  {on(tolerations(2)), pinning},
		"generation not observed":                 {on(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }), rolling},
		"not updated":                             {on(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), rolling},
		"old pods left":                           {on(func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), rolling},
		"one of two":                              {on(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }), rolling},
		"Pending":                                 {on(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), incomplete},
		"paused":                                  {on(func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 0 }), paused},
		"rolled out":                              {on(), inForce},
		"rolled out, replicas by default":         {on(func(d *appsv1.Deployment) { d.Spec.Replicas = nil }), inForce},
		"rolled out, signals disagree":            {withDefaultPlacement(on(), configv1.DefaultPlacementWorkers), inForce + disagree},
		"rolled out, topology not known":          {with(on(), noCluster), inForce},
		"scaled to nothing": {on(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}), inForce},
		"rolled out, unknown control plane": {with(on(), func(in *decision.Inputs) { in.Cluster.ControlPlane = topology.ReadingOf(topologytest.Unknown) }),
			inForce + `; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable`},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message, _ := strings.Cut(test.want, ": ")
			state := map[string]patch.State{"AsExpected": patch.InForce, "Invalid": patch.Failed, "RouterRollingOut": patch.Progressing}[reason]
			want := patch.Result{State: state, Reason: reason, Message: message}
			if got := decision.Observe(test.in); got != want {
				t.Errorf("%v\nwant %v", got, want)
			}
		})
	}
}

// A rollout past its progress deadline is a failure, unless a person set more replicas than there are nodes.
func TestObserveStuck(t *testing.T) {
	const (
		nothing = "The rollout of the router does not finish and no pod is available; look at the events of its pods"
		serving = "The rollout of the router does not finish, other pods still serve; look at the events of its pods"
	)
	type condition = appsv1.DeploymentCondition
	type counts struct{ want, updated, all, available int32 }
	for name, test := range map[string]struct {
		controlPlane configv1.TopologyMode
		counts       counts
		change       func(*appsv1.Deployment, *condition)
		message      string // empty for RouterRollingOut
	}{
		"Pending":                          {topologytest.SR, counts{1, 1, 1, 0}, nil, nothing},
		"old pod serves":                   {topologytest.SR, counts{1, 1, 2, 1}, nil, serving},
		"one of two":                       {topologytest.Dual, counts{2, 2, 2, 1}, nil, serving},
		"no new pod":                       {topologytest.SR, counts{1, 0, 1, 1}, nil, serving},
		"a person's two, one runs":         {topologytest.SR, counts{2, 2, 2, 1}, nil, ""},
		"a person's two, none runs":        {topologytest.SR, counts{2, 2, 2, 0}, nil, nothing},
		"a person's two, the old one runs": {topologytest.SR, counts{2, 0, 2, 1}, nil, serving},
		"a person's three on two nodes":    {topologytest.Dual, counts{3, 3, 3, 1}, nil, serving},
		"of the generation before":         {topologytest.SR, counts{1, 1, 1, 0}, func(d *appsv1.Deployment, _ *condition) { d.Generation = 9 }, ""},
		"in time":                          {topologytest.SR, counts{1, 1, 1, 0}, func(_ *appsv1.Deployment, c *condition) { c.Reason = "ReplicaSetUpdated" }, ""},
		"progressing":                      {topologytest.SR, counts{1, 1, 1, 0}, func(_ *appsv1.Deployment, c *condition) { c.Status = corev1.ConditionTrue }, ""},
		"another condition":                {topologytest.SR, counts{1, 1, 1, 0}, func(_ *appsv1.Deployment, c *condition) { c.Type = "ReplicaFailure" }, ""},
		"paused":                           {topologytest.SR, counts{1, 1, 1, 0}, func(d *appsv1.Deployment, _ *condition) { d.Spec.Paused = true }, ""},
	} {
		in := inputs(test.controlPlane, topologytest.SR, fixture.Placed(fixture.Pinned(t)))
		in.Router = router(t, func(d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To(test.counts.want)
			d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas = test.counts.updated, test.counts.all, test.counts.available
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			}
			if test.change != nil {
				test.change(d, &d.Status.Conditions[0])
			}
		})
		got := decision.Observe(in)
		want := patch.Result{State: patch.Failed, Reason: "RolloutStuck", Message: test.message}
		if test.message == "" {
			want = patch.Result{State: patch.Progressing, Reason: "RouterRollingOut", Message: got.Message}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
