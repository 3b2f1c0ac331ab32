// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
)

const (
	valueImage        = "image"
	valueStatus       = "status"
	valuePhase        = "phase"
	valueAvailable    = "available"
	valueControlPlane = "controlPlaneTopology"
	valueInfra        = "infrastructureTopology"
	valueWorkers      = "workers"
)

// Reasons of a Deployment's conditions.
const (
	rolledOut   = "NewReplicaSetAvailable"
	timedOut    = "ProgressDeadlineExceeded"
	unavailable = "MinimumReplicasUnavailable"
)

var (
	controllers = workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: fleet.Namespace, Name: "*"}

	installation   = workv1.ResourceIdentifier{Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "sno-install"}
	infrastructure = workv1.ResourceIdentifier{Group: configv1.GroupName, Resource: "infrastructures", Name: "cluster"}
	workerPool     = workv1.ResourceIdentifier{Group: mcfgv1.GroupName, Resource: "machineconfigpools", Name: "worker"}
)

// Controllers returns how the work agent treats the Deployments of the controllers. A Deployment is Available when all
// pods of its newest template are: the conditions on operators' objects could still be those of pods before.
func Controllers() workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: controllers,
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
			{Name: valueImage, Path: `.spec.template.spec.containers[0].image`},
			condition(valueReason, string(appsv1.DeploymentProgressing), "reason"), condition(valueMessage, string(appsv1.DeploymentProgressing), "message"),
			condition(valueAvailable, string(appsv1.DeploymentAvailable), "message"),
		}}},
		FeedbackScrapeType: workv1.FeedbackWatchType,
		ConditionRules: []workv1.ConditionRule{{
			Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestAvailable,
			CelExpressions: []string{
				`has(object.status) && has(object.status.observedGeneration) && object.status.observedGeneration >= object.metadata.generation`,
				`(has(object.status.updatedReplicas) ? object.status.updatedReplicas : 0) == object.spec.replicas`,
				`(has(object.status.availableReplicas) ? object.status.availableReplicas : 0) == object.spec.replicas`,
				`(has(object.status.replicas) ? object.status.replicas : 0) == object.spec.replicas`,
			},
			Message: "Rollout of the controllers",
		}},
	}
}

// Rollout is a Deployment of a controller whose newest pods are not all available, so that what its module reports may
// be of pods before.
type Rollout struct {
	Module, Reason, Message string
	// Failing is set if that does not end by itself, as far as the cluster knows.
	Failing bool
}

// rollout returns nil for a Deployment that is rolled out.
func rollout(m workv1.ManifestCondition) *Rollout {
	available := meta.FindStatusCondition(m.Conditions, workv1.ManifestAvailable)
	if available == nil || available.Status == metav1.ConditionTrue {
		return nil
	}
	values := m.StatusFeedbacks.Values
	r := &Rollout{
		Module: strings.TrimSuffix(strings.TrimPrefix(m.ResourceMeta.Name, "sno-"), "-controller"),
		Reason: text(values, valueReason), Message: text(values, valueMessage), Failing: true,
	}
	switch {
	case available.Reason != workv1.ConditionRuleEvaluated: // the Deployment is not there, and the values are old ones
		r.Reason, r.Message = available.Reason, available.Message
	case r.Reason == rolledOut: // pods have ended after the rollout
		r.Reason, r.Message = unavailable, text(values, valueAvailable)
	case r.Reason != timedOut:
		r.Failing = false
	}
	return r
}

// Installing is how far sno-install is with a cluster.
type Installing struct{ Phase, Message string }

// Installation returns the ConfigMap in which sno-install publishes how far it is, as a manifest, and how the work
// agent reads it. Other clusters have none.
func Installation() (*unstructured.Unstructured, workv1.ManifestConfigOption) {
	return manifest(corev1.SchemeGroupVersion.WithKind("ConfigMap"), installation), readOnly(installation, workv1.JsonPath{Name: valueStatus, Path: ".data.status"},
		workv1.JsonPath{Name: valuePhase, Path: ".data.phase"}, workv1.JsonPath{Name: valueMessage, Path: ".data.message"})
}

// Topology returns manifests of the objects that have the topology of a spoke, and how the work agent reads them.
func Topology() ([]*unstructured.Unstructured, []workv1.ManifestConfigOption) {
	return []*unstructured.Unstructured{
			manifest(configv1.GroupVersion.WithKind("Infrastructure"), infrastructure),
			manifest(mcfgv1.GroupVersion.WithKind("MachineConfigPool"), workerPool),
		}, []workv1.ManifestConfigOption{
			readOnly(infrastructure, workv1.JsonPath{Name: valueControlPlane, Path: `.status.controlPlaneTopology`},
				workv1.JsonPath{Name: valueInfra, Path: `.status.infrastructureTopology`}),
			readOnly(workerPool, workv1.JsonPath{Name: valueWorkers, Path: `.status.machineCount`}),
		}
}
