// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

func cluster(controlPlane, infrastructure configv1.TopologyMode, platform configv1.PlatformType) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: platform}
}

func TestDesiredOperand(t *testing.T) {
	const sr, ha = configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode
	type outcome struct {
		Replicas           int32
		Unavailable, Surge string
		HostPorts          []int32
		Master, Tolerated  bool
		Apart              bool
		Budget             string
		BudgetOwner        string
	}
	private := &operatorv1.EndpointPublishingStrategy{Type: operatorv1.PrivateStrategyType}
	nodePorts := []int32{80, 443, 1936}
	for _, test := range []struct {
		name       string
		cluster    topology.Cluster
		placement  configv1.DefaultPlacement
		publishing *operatorv1.EndpointPublishingStrategy
		want       outcome
	}{
		{"single node", cluster(sr, sr, configv1.NonePlatformType), "", nil,
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", HostPorts: nodePorts}},
		{"single node, default placement on the control plane", cluster(sr, ha, configv1.NonePlatformType), configv1.DefaultPlacementControlPlane, nil,
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", HostPorts: nodePorts, Master: true, Tolerated: true}},
		{"single node, private", cluster(sr, sr, configv1.NonePlatformType), "", private,
			outcome{Replicas: 1, Unavailable: "25%", Surge: "25%"}},
		{"highly available on a cloud", cluster(ha, ha, configv1.AWSPlatformType), "", nil,
			outcome{Replicas: 2, Unavailable: "50%", Surge: "25%", Apart: true, Budget: "50%", BudgetOwner: "internal"}},
		{"highly available without a load balancer", cluster(ha, ha, configv1.NonePlatformType), "", nil,
			outcome{Replicas: 2, Unavailable: "25%", Surge: "0", HostPorts: nodePorts, Budget: "50%", BudgetOwner: "internal"}},
	} {
		ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Name: "internal"}}
		ic.Spec.EndpointPublishingStrategy = test.publishing
		before := ic.DeepCopy()
		router, budget, err := desiredOperand(test.cluster, test.placement, ic)
		if err != nil {
			t.Fatal(err)
		}
		pod := router.Spec.Template.Spec
		_, master := pod.NodeSelector["node-role.kubernetes.io/master"]
		got := outcome{
			Replicas:    *router.Spec.Replicas,
			Unavailable: router.Spec.Strategy.RollingUpdate.MaxUnavailable.String(),
			Surge:       router.Spec.Strategy.RollingUpdate.MaxSurge.String(),
			Master:      master, Tolerated: len(pod.Tolerations) == 2,
			Apart: pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil,
		}
		for _, port := range pod.Containers[0].Ports {
			if pod.HostNetwork {
				got.HostPorts = append(got.HostPorts, port.HostPort)
			}
		}
		if budget != nil {
			got.Budget, got.BudgetOwner = budget.Spec.MaxUnavailable.String(), budget.Labels[owningLabel]
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(before, ic); diff != "" {
			t.Errorf("%s: the IngressController was changed:\n%s", test.name, diff)
		}
	}
}

// resourceapply compares a hash of the spec, so it must always be the same.
func TestDesiredOperandIsStable(t *testing.T) {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Name: "internal"}}
	at := cluster(configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode, configv1.AWSPlatformType)
	router, budget, err := desiredOperand(at, "", ic)
	if err != nil {
		t.Fatal(err)
	}
	ic.Status = desiredStatus(ic, effectivePublishing(ic, at.Platform), router)
	again, budgetAgain, err := desiredOperand(at, "", ic)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(router, again); diff != "" {
		t.Errorf("router (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(budget, budgetAgain); diff != "" {
		t.Errorf("budget (-first +second):\n%s", diff)
	}
}

func TestDesiredDefault(t *testing.T) {
	const sr, ha, external = configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode
	for _, test := range []struct {
		controlPlane, infrastructure configv1.TopologyMode
		none, pinned                 bool
	}{
		{sr, sr, false, true},
		{sr, ha, false, false},
		{ha, ha, false, false},
		{external, sr, true, false},
	} {
		ic, err := desiredDefault(cluster(test.controlPlane, test.infrastructure, configv1.NonePlatformType), "")
		if err != nil {
			t.Fatal(err)
		}
		if (ic == nil) != test.none {
			t.Errorf("%s/%s: %v", test.controlPlane, test.infrastructure, ic)
			continue
		}
		if ic != nil && (ic.Spec.NodePlacement != nil) != test.pinned {
			t.Errorf("%s/%s: placement %v", test.controlPlane, test.infrastructure, ic.Spec.NodePlacement)
		}
	}
}

func TestDesiredStatusKeepsOthers(t *testing.T) {
	foreign := operatorv1.OperatorCondition{Type: "IngressTopologyPatchInForce", Status: operatorv1.ConditionTrue}
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Name: "internal", Generation: 4}}
	ic.Status.Conditions = []operatorv1.OperatorCondition{foreign}
	router := &appsv1.Deployment{Status: appsv1.DeploymentStatus{
		AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}}
	publishing := effectivePublishing(ic, configv1.NonePlatformType)
	first := desiredStatus(ic, publishing, router)
	if diff := cmp.Diff(foreign, first.Conditions[0]); diff != "" {
		t.Errorf("another client's condition (-want +got):\n%s", diff)
	}
	got := map[string]operatorv1.ConditionStatus{}
	for _, c := range first.Conditions {
		got[c.Type] = c.Status
	}
	want := map[string]operatorv1.ConditionStatus{"Available": operatorv1.ConditionTrue, foreign.Type: operatorv1.ConditionTrue}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if first.AvailableReplicas != 2 || first.ObservedGeneration != 4 {
		t.Errorf("%d available, generation %d", first.AvailableReplicas, first.ObservedGeneration)
	}
	ic.Status = first
	if diff := cmp.Diff(first, desiredStatus(ic, publishing, router)); diff != "" {
		t.Errorf("the same router gives another status (-first +second):\n%s", diff)
	}
}
