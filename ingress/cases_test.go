// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// The five modes, and two other values.
const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")

	toControlPlane, toWorkers = configv1.DefaultPlacementControlPlane, configv1.DefaultPlacementWorkers
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{
		ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: configv1.NonePlatformType,
	}
}

const placementJSON = `{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/master":""}},"tolerations":[` +
	`{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
	`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]}`

func pinned(t testing.TB) *operatorv1.NodePlacement {
	t.Helper()
	placement := &operatorv1.NodePlacement{}
	if err := json.Unmarshal([]byte(placementJSON), placement); err != nil {
		t.Fatal(err)
	}
	return placement
}

func moved() *operatorv1.NodePlacement {
	return &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/infra": ""}}}
}

func expressing(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func liveIC(change ...func(*operatorv1.IngressController)) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{
		Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName,
	}}
	for _, f := range change {
		f(ic)
	}
	return ic
}

func replicas(n int32) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) { ic.Spec.Replicas = ptr.To(n) }
}

func placed(p *operatorv1.NodePlacement) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) { ic.Spec.NodePlacement = p }
}

func labelled(selector *metav1.LabelSelector) func(*operatorv1.IngressController) {
	return placed(&operatorv1.NodePlacement{NodeSelector: selector})
}

func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
