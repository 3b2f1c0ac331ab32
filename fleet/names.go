// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/solonode/sno/patch"
)

const (
	// AddOn is the name of the add-on: of its ClusterManagementAddOn, and of its ManagedClusterAddOn in each cluster.
	AddOn = "sno"
	// Namespace is the namespace of the controllers on a spoke, and of the manager on the hub.
	Namespace = "sno-system"
	// Manager is the name of the manager's Lease, in Namespace on the hub.
	Manager = "fleet-controller." + patch.Domain
	// OptOutLabel on a ManagedCluster keeps the cluster out of the Placements. A ManagedClusterAddOn that is deleted
	// instead is created again by Open Cluster Management.
	OptOutLabel = patch.Domain + "/opt-out"
	// CanaryLabel on a ManagedCluster makes it a canary.
	CanaryLabel = patch.Domain + "/canary"

	// HubAnnotation on the Namespace of the controllers has the UID of the hub that manages the cluster.
	HubAnnotation = patch.Domain + "/fleet-hub"
	// ConfigurationAnnotation on the Deployments of a cluster has the configuration, NAMESPACE/NAME, that they are of.
	ConfigurationAnnotation = patch.Domain + "/fleet-configuration"

	// ClaimControlPlane is the claim that Red Hat Advanced Cluster Management publishes, with the topology of the control
	// plane. Without that product somebody has to create it on each spoke.
	ClaimControlPlane = "controlplanetopology.openshift.io"
	// ClaimInfrastructure is the claim of ours with the infrastructure topology.
	ClaimInfrastructure = "infrastructuretopology." + patch.Domain
	// ClaimWorkers is the claim of ours with the number of nodes of the pool "worker".
	ClaimWorkers = "workers." + patch.Domain
)

// Claim returns the value of a claim that a cluster has, or nothing.
func Claim(cluster *clusterv1.ManagedCluster, name string) string {
	for _, c := range cluster.Status.ClusterClaims {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}
