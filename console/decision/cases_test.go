// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/console/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

const cvo, stock, person, own = "cluster-version-operator", "console", "oc", "sno.solonode.github.io/console"

const (
	placedJSON = `{"f:spec":{"f:replicas":{},"f:strategy":{"f:type":{},"f:rollingUpdate":{"f:maxSurge":{},"f:maxUnavailable":{}}},` +
		`"f:template":{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}`
	shapeJSON      = placedJSON + `}}}}`
	manifestJSON   = placedJSON + `,"f:containers":{},"f:affinity":{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`
	replicasJSON   = `{"f:spec":{"f:replicas":{}}}`
	containersJSON = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`
	overrideJSON   = `{"f:spec":{"f:overrides":{` +
		`"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"downloads\",\"namespace\":\"openshift-console\"}":` +
		`{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`
	wholeListJSON = `{"f:spec":{"f:overrides":{}}}`
)

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == own {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

func ownedBy(manager, fields string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.ManagedFields = append(d.ManagedFields, entry(manager, fields)) }
}

// stockShape is the Deployment of a console operator that follows the topology, on one node.
func stockShape(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return fixture.Manifest(name, append([]func(*appsv1.Deployment){func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{}
	}, ownedBy(stock, manifestJSON)}, change...)...)
}

func theEntry(unmanaged bool) configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-console", Name: "downloads", Unmanaged: unmanaged}
}

func otherEntry() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}
}

// version is a ClusterVersion that the cluster-version-operator has observed.
func version(overrides ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", UID: "cv", Generation: 3}}
	cv.Spec.Overrides = overrides
	cv.Status.ObservedGeneration = 3
	cv.ManagedFields = []metav1.ManagedFieldsEntry{entry("cluster-bootstrap", `{"f:spec":{"f:clusterID":{}}}`)}
	return cv
}

func withOwner(cv *configv1.ClusterVersion, manager, fields string) *configv1.ClusterVersion {
	cv.ManagedFields = append(cv.ManagedFields, entry(manager, fields))
	return cv
}

// inputs are those of one node with a release that does not follow the topology.
func inputs(change ...func(*decision.Inputs)) decision.Inputs {
	in := decision.Inputs{
		Cluster: ptr.To(fixture.ClusterOf(topologytest.SR, topologytest.SR)), ClusterVersion: version(),
		Console:   fixture.Manifest("console", ownedBy("installer", containersJSON)),
		Downloads: fixture.Manifest("downloads", ownedBy(cvo, manifestJSON)),
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func downloads(d *appsv1.Deployment) func(*decision.Inputs) {
	return func(in *decision.Inputs) { in.Downloads = d }
}

func consoleIs(d *appsv1.Deployment) func(*decision.Inputs) {
	return func(in *decision.Inputs) { in.Console = d }
}

func deleting(d *appsv1.Deployment) {
	now := metav1.NewTime(time.Unix(1, 0))
	d.DeletionTimestamp = &now
}

func optedOut(modules string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations = map[string]string{patch.OptOutAnnotation: modules} }
}

func topologies(controlPlane, infrastructure configv1.TopologyMode) func(*decision.Inputs) {
	return func(in *decision.Inputs) { in.Cluster = ptr.To(fixture.ClusterOf(controlPlane, infrastructure)) }
}

func noCluster(in *decision.Inputs) { in.Cluster = nil }
func forced(in *decision.Inputs)    { in.ForceConflicts = true }
func scaled(d *appsv1.Deployment)   { d.Spec.Replicas = ptr.To[int32](3) }

var states = map[string]patch.State{
	"Invalid": patch.Failed, "WaitingForObject": patch.Waiting, "WaitingForInfrastructure": patch.Waiting, "OptedOut": patch.OptedOut,
	"NotNeeded": patch.NotNeeded, "FieldOwnedByOther": patch.Blocked, "RolloutStuck": patch.Failed,
}

func managed(state operatorv1.ManagementState) func(*decision.Inputs) {
	return func(in *decision.Inputs) {
		in.Operator = &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		in.Operator.Spec.ManagementState = state
	}
}

func clusterVersion(cv *configv1.ClusterVersion) func(*decision.Inputs) {
	return func(in *decision.Inputs) { in.ClusterVersion = cv }
}

// stuck sets the status of a rollout past its progress deadline, whose old pod is available.
func stuck(d *appsv1.Deployment) {
	d.Generation = 2
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
	}
}

func overridden(manager string, unmanaged bool) func(*decision.Inputs) {
	return clusterVersion(withOwner(version(theEntry(unmanaged)), manager, overrideJSON))
}
