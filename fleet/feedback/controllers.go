// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
)

const (
	valueImage        = "image"
	valueControlPlane = "controlPlaneTopology"
	valueInfra        = "infrastructureTopology"
	valueWorkers      = "workers"
)

var (
	controllers = workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: fleet.Namespace, Name: "*"}

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
