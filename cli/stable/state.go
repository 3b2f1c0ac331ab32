package stable

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// The kinds that are looked at.
const (
	kindClusterVersion  = "ClusterVersion"
	kindClusterOperator = "ClusterOperator"
	kindPool            = "MachineConfigPool"
	kindNode            = "Node"
	kindRequest         = "CertificateSigningRequest"
	kindDeployment      = "Deployment"
	kindDaemonSet       = "DaemonSet"
	kindStatefulSet     = "StatefulSet"
	kindPod             = "Pod"
)

// State is what was read of a cluster at one time.
type State struct {
	ClusterVersions  []configv1.ClusterVersion
	ClusterOperators []configv1.ClusterOperator
	Pools            []machineconfigurationv1.MachineConfigPool
	Nodes            []corev1.Node
	Requests         []certificatesv1.CertificateSigningRequest
	// Deployments, DaemonSets and StatefulSets are those of every namespace; Look picks the platform's.
	Deployments  []appsv1.Deployment
	DaemonSets   []appsv1.DaemonSet
	StatefulSets []appsv1.StatefulSet
	// APIServers are the pods in which the API server runs.
	APIServers []corev1.Pod

	// NotServed are the kinds that the cluster does not serve, such as OpenShift's on plain Kubernetes.
	NotServed []string
	// Unknown are the kinds that could not be read, or not to their end.
	Unknown []Unknown
}

// Unknown is a kind that could not be read.
type Unknown struct {
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

func (u Unknown) String() string { return u.Kind + ": not known: " + u.Error }

// knows tells whether all objects of the kind are in the state.
func (s *State) knows(kind string) bool {
	return !slices.Contains(s.NotServed, kind) && !slices.ContainsFunc(s.Unknown, func(u Unknown) bool { return u.Kind == kind })
}
