package console

import (
	"slices"

	"github.com/solonode/sno/patch"
	shapes "github.com/solonode/sno/patch/workload"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "console"
	// ConditionPrefix begins the types of the sub-conditions.
	ConditionPrefix = "ConsoleTopology"

	// Namespace is where both Deployments and their PodDisruptionBudgets live.
	Namespace = "openshift-console"
	// ConsoleName is the name of the console's Deployment, and of the budget over its pods.
	ConsoleName = "console"
	// DownloadsName is the same for the downloads server.
	DownloadsName = "downloads"
	// OperatorName is the name of the console operator's own resource, the only Console of operator.openshift.io.
	OperatorName = "cluster"
	// ClusterVersionName is the name of the cluster's only ClusterVersion.
	ClusterVersionName = "version"

	// ClusterVersionOperator is the field manager of whatever comes from a static manifest of the release.
	ClusterVersionOperator = "cluster-version-operator"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// The fields of a Deployment that make up its shape. Node selector, tolerations and the anti-affinity terms are atomic in the
// API: whoever sets one of them owns all of it.
const (
	FieldReplicas       = ".spec.replicas"
	FieldStrategyType   = ".spec.strategy.type"
	FieldMaxUnavailable = ".spec.strategy.rollingUpdate.maxUnavailable"
	FieldMaxSurge       = ".spec.strategy.rollingUpdate.maxSurge"
	FieldNodeSelector   = ".spec.template.spec.nodeSelector"
	FieldTolerations    = ".spec.template.spec.tolerations"

	FieldRequiredAntiAffinity  = shapes.FieldRequiredAntiAffinity
	FieldPreferredAntiAffinity = shapes.FieldPreferredAntiAffinity
	// FieldOverrides holds the entry that keeps the cluster-version-operator away from downloads.
	FieldOverrides = ".spec.overrides"
)

// ShapeFields lists the fields of the shape. They belong together: they are taken and given back as a whole. Of downloads, all
// of them may be taken over from ClusterVersionOperator, but only when Decide says so.
func ShapeFields() []string {
	return []string{
		FieldReplicas, FieldStrategyType, FieldMaxUnavailable, FieldMaxSurge, FieldNodeSelector, FieldTolerations,
		FieldRequiredAntiAffinity, FieldPreferredAntiAffinity,
	}
}

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // shaped, and the pods are there
	ReasonNotNeeded                = patch.ReasonNotNeeded                // two replicas, or a console operator that knows topology
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonDryRun                   = patch.ReasonDryRun                   // would be written
	ReasonTakingOver               = "TakingOver"                         // the cluster-version-operator has to let go first
	ReasonGivingBack               = "GivingBack"                         // the same, on the way out
	ReasonRollingOut               = patch.ReasonRollingOut               // shaped, the pods are on their way
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // no Deployment, or nothing to put the override into
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // a field of the shape, or the override, is somebody else's
	ReasonDrainBlocked             = "DrainBlocked"                       // a budget that no drain of one node can satisfy
	ReasonReverted                 = patch.ReasonReverted                 // somebody took the patch off
	ReasonForbidden                = patch.ReasonForbidden                // RBAC
	ReasonRolloutStuck             = "RolloutStuck"                       // the progress deadline has passed
	ReasonInvalid                  = patch.ReasonInvalid                  // input that cannot be understood
	ReasonApplyFailed              = patch.ReasonApplyFailed              // any other answer of the API server
)

// StockManagers are the field managers under which a console operator writes its Deployments. It writes them again and again,
// so nothing is ever taken from it. Two names, because a field manager defaults to the name of the program, which is
// "console" in the stock image and differs between builds.
func StockManagers() []string { return []string{"console", "console-operator"} }

func isStock(manager string) bool { return slices.Contains(StockManagers(), manager) }

// labels are those of the pods, in the static manifest as well as in the operator's.
func labels(name string) map[string]string {
	component := "ui"
	if name == DownloadsName {
		component = "downloads"
	}
	return map[string]string{"app": "console", "component": component}
}
