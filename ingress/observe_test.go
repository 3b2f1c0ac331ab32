package ingress_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
)

// runningRouter is a router that follows the patch and is rolled out.
func runningRouter(t testing.TB, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	router := &appsv1.Deployment{}
	router.Namespace, router.Name, router.Generation = ingress.RouterNamespace, ingress.RouterName, 2
	router.Spec.Replicas = ptr.To[int32](1)
	router.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}
	router.Spec.Template.Spec.Tolerations = append([]corev1.Toleration{{Key: "extra", Operator: corev1.TolerationOpExists}}, pinned(t).Tolerations...)
	router.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	for _, f := range change {
		f(router)
	}
	return router
}

func TestObserve(t *testing.T) {
	const (
		patching = "The default IngressController is being patched"
		making   = "The default IngressController is pinned; waiting for the ingress operator to make the router Deployment"
		pinning  = "The default IngressController is pinned; waiting for the ingress operator to pin the router Deployment"
		rolling  = "The router on the control plane is rolling out; if a pod stays Pending, look at its events"
		missing  = "Not every pod of the router on the control plane is available; if one stays Pending, look at its events"
		paused   = "The rollout of the router is paused; resume it with oc rollout resume"
		standing = "The router is pinned to the control plane"
	)
	onCluster := func(router *appsv1.Deployment, change ...func(*operatorv1.IngressController)) ingress.Inputs {
		in := inputs(sr, sr, append([]func(*operatorv1.IngressController){placed(pinned(t))}, change...)...)
		in.Router = router
		return in
	}
	status := func(change func(*appsv1.DeploymentStatus)) *appsv1.Deployment {
		return runningRouter(t, func(d *appsv1.Deployment) { change(&d.Status) })
	}
	pod := func(change func(*corev1.PodSpec)) *appsv1.Deployment {
		return runningRouter(t, func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec) })
	}
	unknownControlPlane := onCluster(runningRouter(t))
	cluster := clusterOf(unknown, sr)
	unknownControlPlane.Cluster = &cluster
	noCluster := onCluster(runningRouter(t))
	noCluster.Cluster = nil

	forced := func(in ingress.Inputs) ingress.Inputs { in.ForceConflicts = true; return in }
	invalid := ingress.Observe(onCluster(runningRouter(t), labelled(expressing("a", metav1.LabelSelectorOpExists))))
	if invalid.State != patch.Failed || invalid.Reason != "Invalid" {
		t.Errorf("a node selector that is no map: %v", invalid)
	}

	for name, test := range map[string]struct {
		in      ingress.Inputs
		message string
	}{
		"no IngressController":  {ingress.Inputs{}, patching},
		"not placed yet":        {onCluster(runningRouter(t), placed(nil)), patching},
		"placed elsewhere":      {onCluster(runningRouter(t), placed(moved())), patching},
		"placed in other words": {onCluster(runningRouter(t), placed(pinnedByExpression(t))), standing},
		"placed in other words, router on the workers": {onCluster(pod(func(p *corev1.PodSpec) {
			p.NodeSelector = map[string]string{"node-role.kubernetes.io/worker": ""}
		}), placed(pinnedByExpression(t))), pinning},
		"placed elsewhere in other words": {onCluster(runningRouter(t), labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, ""))), patching},
		"placed as no operator can follow, and taken by force": {forced(onCluster(runningRouter(t),
			labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpExists)))), patching},
		"no router":              {onCluster(nil), making},
		"router without a place": {onCluster(pod(func(p *corev1.PodSpec) { p.NodeSelector = nil })), pinning},
		"router on the workers": {onCluster(pod(func(p *corev1.PodSpec) {
			p.NodeSelector = map[string]string{"node-role.kubernetes.io/worker": ""}
		})), pinning},
		"router with another value of the label": {onCluster(pod(func(p *corev1.PodSpec) { p.NodeSelector["node-role.kubernetes.io/master"] = "no" })), pinning},
		"router without tolerations":             {onCluster(pod(func(p *corev1.PodSpec) { p.Tolerations = nil })), pinning},
		"router with one of the tolerations":     {onCluster(pod(func(p *corev1.PodSpec) { p.Tolerations = p.Tolerations[:2] })), pinning},
		"operator has not seen it":               {onCluster(status(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 })), rolling},
		"not updated":                            {onCluster(status(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 0 })), rolling},
		"old pods left":                          {onCluster(status(func(s *appsv1.DeploymentStatus) { s.Replicas = 2 })), rolling},
		"Pending":                                {onCluster(status(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 0 })), missing},
		"one of two":                             {onCluster(runningRouter(t, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) })), rolling},
		"paused":                                 {onCluster(runningRouter(t, func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 0 })), paused},
		"rolled out":                             {onCluster(runningRouter(t)), standing},
		"rolled out, replicas by default":        {onCluster(runningRouter(t, func(d *appsv1.Deployment) { d.Spec.Replicas = nil })), standing},
		"scaled to nothing": {onCluster(runningRouter(t, func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 2}
		})), standing},
		"rolled out, signals disagree": {withDefaultPlacement(onCluster(runningRouter(t)), configv1.DefaultPlacementWorkers),
			standing + "; the infrastructure topology decided, defaultPlacement is Workers, as wherever nobody chose (--placement=defaultPlacement lets it decide)"},
		"rolled out, unknown control plane": {unknownControlPlane,
			standing + `; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable`},
		"rolled out, topology forgotten": {noCluster, standing},
	} {
		t.Run(name, func(t *testing.T) {
			want := patch.Result{State: patch.Progressing, Reason: "RouterRollingOut", Message: test.message}
			if len(test.message) >= len(standing) && test.message[:len(standing)] == standing {
				want = patch.Result{State: patch.InForce, Reason: "AsExpected", Message: test.message}
			}
			if got := ingress.Observe(test.in); got != want {
				t.Errorf("%v\nwant %v", got, want)
			}
		})
	}
}

// A rollout that the Deployment controller has given up is a failure, and not one that is on its way. The exception is a person's: more routers
// than there are nodes.
func TestObserveStuck(t *testing.T) {
	const (
		nothing = "The rollout of the router does not finish and no pod is available; look at the events of its pods"
		serving = "The rollout of the router does not finish, other pods still serve; look at the events of its pods"
	)
	type counts struct{ want, updated, all, available int32 }
	for name, test := range map[string]struct {
		controlPlane configv1.TopologyMode
		counts       counts
		change       func(*appsv1.Deployment)
		message      string // empty for one that is on its way
	}{
		"Pending":                          {sr, counts{1, 1, 1, 0}, nil, nothing},
		"old pod serves":                   {sr, counts{1, 1, 2, 1}, nil, serving},
		"one of two":                       {dual, counts{2, 2, 2, 1}, nil, serving},
		"no new pod":                       {sr, counts{1, 0, 1, 1}, nil, serving},
		"a person's two, one runs":         {sr, counts{2, 2, 2, 1}, nil, ""},
		"a person's two, none runs":        {sr, counts{2, 2, 2, 0}, nil, nothing},
		"a person's two, the old one runs": {sr, counts{2, 0, 2, 1}, nil, serving},
		"a person's three on two nodes":    {dual, counts{3, 3, 3, 1}, nil, serving},
		"of the generation before":         {sr, counts{1, 1, 1, 0}, func(d *appsv1.Deployment) { d.Generation = 9 }, ""},
		"in time":                          {sr, counts{1, 1, 1, 0}, func(d *appsv1.Deployment) { d.Status.Conditions[0].Reason = "ReplicaSetUpdated" }, ""},
		"progressing":                      {sr, counts{1, 1, 1, 0}, func(d *appsv1.Deployment) { d.Status.Conditions[0].Status = corev1.ConditionTrue }, ""},
		"another condition":                {sr, counts{1, 1, 1, 0}, func(d *appsv1.Deployment) { d.Status.Conditions[0].Type = appsv1.DeploymentReplicaFailure }, ""},
		"paused":                           {sr, counts{1, 1, 1, 0}, func(d *appsv1.Deployment) { d.Spec.Paused = true }, ""},
	} {
		in := inputs(test.controlPlane, sr, placed(pinned(t)))
		in.Router = runningRouter(t, func(d *appsv1.Deployment) {
			d.Spec.Replicas = ptr.To(test.counts.want)
			d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas = test.counts.updated, test.counts.all, test.counts.available
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			}
			if test.change != nil {
				test.change(d)
			}
		})
		got := ingress.Observe(in)
		want := patch.Result{State: patch.Failed, Reason: "RolloutStuck", Message: test.message}
		if test.message == "" {
			want = patch.Result{State: patch.Progressing, Reason: "RouterRollingOut", Message: got.Message}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
