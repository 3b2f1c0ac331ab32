// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/patch"
)

const (
	headJSON = `{"kind":"IngressController","apiVersion":"operator.openshift.io/v1",` +
		`"metadata":{"name":"default","namespace":"openshift-ingress-operator"},"spec":`
	onePinned    = headJSON + `{"replicas":1,"nodePlacement":` + fixture.PlacementJSON + `}}`
	twoPinned    = headJSON + `{"replicas":2,"nodePlacement":` + fixture.PlacementJSON + `}}`
	onlyPlaced   = headJSON + `{"nodePlacement":` + fixture.PlacementJSON + `}}`
	oneExpressed = headJSON + `{"replicas":1,"nodePlacement":{"nodeSelector":{"matchExpressions":[` +
		`{"key":"node-role.kubernetes.io/master","operator":"In","values":[""]}]},"tolerations":[` +
		`{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
		`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]}}}`
	onlyOne      = headJSON + `{"replicas":1}}`
	nothingSpec  = headJSON + `{}}`
	oneTolerated = headJSON + `{"replicas":1,"nodePlacement":{"tolerations":[` +
		`{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
		`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]}}}`
	tolerationsJSON = `{"f:spec":{"f:nodePlacement":{"f:tolerations":{}}}}`
	replicasJSON    = `{"f:spec":{"f:replicas":{}}}`
	placedJSON      = `{"f:spec":{"f:nodePlacement":{"f:nodeSelector":{},"f:tolerations":{}}}}`
	bothJSON        = `{"f:spec":{"f:replicas":{},"f:nodePlacement":{"f:nodeSelector":{},"f:tolerations":{}}}}`
)

func pinnedByExpression(t testing.TB) *operatorv1.NodePlacement {
	t.Helper()
	placement := fixture.Pinned(t)
	placement.NodeSelector = fixture.Expressing("node-role.kubernetes.io/master", metav1.LabelSelectorOpIn, "")
	return placement
}

// narrowed is a pin by more labels.
func narrowed(t testing.TB) *operatorv1.NodePlacement {
	t.Helper()
	placement := fixture.Pinned(t)
	placement.NodeSelector.MatchLabels["kubernetes.io/os"] = "linux"
	return placement
}

var infraToleration = corev1.Toleration{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpExists}

func tolerating(t testing.TB, more ...corev1.Toleration) *operatorv1.NodePlacement {
	t.Helper()
	placement := fixture.Pinned(t)
	placement.Tolerations = append(placement.Tolerations, more...)
	return placement
}

func liveIC(change ...func(*operatorv1.IngressController)) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{
		Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName, UID: "one", ResourceVersion: "1",
		ManagedFields: []metav1.ManagedFieldsEntry{entry("cluster-ingress-operator", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{}}`)},
	}}
	for _, f := range change {
		f(ic)
	}
	return ic
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "operator.openshift.io/v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func ownedBy(manager, fields string) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) {
		operation := metav1.ManagedFieldsOperationUpdate
		if manager == decision.FieldOwner {
			operation = metav1.ManagedFieldsOperationApply
		}
		ic.ManagedFields = append(ic.ManagedFields, entry(manager, operation, fields))
	}
}

func annotated(key, value string) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) { metav1.SetMetaDataAnnotation(&ic.ObjectMeta, key, value) }
}

func optedOutOf(modules string) func(*operatorv1.IngressController) {
	return annotated("sno.solonode.github.io/opt-out", modules)
}

func inputs(controlPlane, infrastructure configv1.TopologyMode, change ...func(*operatorv1.IngressController)) decision.Inputs {
	cluster := fixture.ClusterOf(controlPlane, infrastructure)
	return decision.Inputs{Cluster: &cluster, IngressController: liveIC(change...)}
}

func with(in decision.Inputs, change func(*decision.Inputs)) decision.Inputs {
	change(&in)
	return in
}

func noCluster(in *decision.Inputs) { in.Cluster = nil }

func forced(in *decision.Inputs) { in.ForceConflicts = true }

func fromDefault(in *decision.Inputs) { in.Placement = ingress.PlacementFromDefaultPlacement }

func withDefaultPlacement(in decision.Inputs, placement configv1.DefaultPlacement) decision.Inputs {
	in.Ingress = &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: ingress.ConfigName}}
	in.Ingress.Status.DefaultPlacement = placement
	return in
}

func specOf(step patch.Step) *operatorv1ac.IngressControllerSpecApplyConfiguration {
	return step.Intent.(*operatorv1ac.IngressControllerApplyConfiguration).Spec
}
