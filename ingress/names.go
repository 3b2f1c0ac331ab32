package ingress

import (
	"github.com/solonode/sno/patch"
)

// Names of the module, and keys of the objects that it reads.
const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "ingress"
	// ConditionPrefix begins the types of the sub-conditions on the IngressController.
	ConditionPrefix = "IngressTopology"

	// IngressControllerNamespace and IngressControllerName are the key of the one IngressController that is patched.
	IngressControllerNamespace = "openshift-ingress-operator"
	IngressControllerName      = "default"
	// RouterNamespace and RouterName are the key of the Deployment that the ingress operator makes of it.
	RouterNamespace = "openshift-ingress"
	RouterName      = "router-default"
	// ConfigName is the name of the cluster's only Infrastructure and Ingress.
	ConfigName = "cluster"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Field paths of the patch.
const (
	FieldReplicas      = ".spec.replicas"
	FieldNodePlacement = ".spec.nodePlacement"
)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // pinned, and the router follows
	ReasonNotNeeded                = patch.ReasonNotNeeded                // the router belongs to the workers
	ReasonExternalControlPlane     = "ExternalControlPlane"               // no control-plane nodes in this cluster
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonDryRun                   = patch.ReasonDryRun                   // would be written
	ReasonRouterRollingOut         = "RouterRollingOut"                   // patched, the router is on its way
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // no default IngressController (yet), or it is being deleted
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // placement or replicas belong to somebody else
	ReasonReverted                 = patch.ReasonReverted                 // somebody takes the patch off again
	ReasonForbidden                = patch.ReasonForbidden                // RBAC
	ReasonRolloutStuck             = "RolloutStuck"                       // the router's progress deadline has passed
	ReasonInvalid                  = patch.ReasonInvalid                  // input that cannot be understood
	ReasonApplyFailed              = patch.ReasonApplyFailed              // any other answer of the API server
)

// StockManagers are the field managers under which the stock ingress operator creates the default IngressController. It
// writes spec.replicas when it creates the object and never again (U-ING-2, U-ING-11), so that value may be taken
// over. Two names, because a field manager defaults to the name of the program, which differs between builds.
func StockManagers() []string { return []string{"cluster-ingress-operator", "ingress-operator"} }

// ReleasedManager is the field manager of spec.replicas where this module let go and left a number that fits the topology.
var ReleasedManager = patch.ReleasedManager(Name)

// ReplicasManagers are the field managers whose spec.replicas may be taken over: nobody decided on those numbers.
func ReplicasManagers() []string { return append(StockManagers(), ReleasedManager) }
