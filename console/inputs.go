package console

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the objects that the decision needs, live and with their managedFields. They are only read. nil means that the
// object is known not to exist: a caller whose read failed does not decide at all.
type Inputs struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read; nil while no Infrastructure was read.
	Cluster *topology.Cluster
	// Operator is consoles.operator.openshift.io/cluster; nil on a cluster that has no console operator.
	Operator *operatorv1.Console
	// ClusterVersion is clusterversions.config.openshift.io/version; nil on a cluster that has no cluster-version-operator.
	ClusterVersion *configv1.ClusterVersion
	// Console and Downloads are the Deployments.
	Console, Downloads *appsv1.Deployment
	// ConsoleBudget and DownloadsBudget are the PodDisruptionBudgets over their pods.
	ConsoleBudget, DownloadsBudget *policyv1.PodDisruptionBudget
	// ForceConflicts takes contested fields of the Deployments from whoever owns them. Off unless a person asked for it. It never
	// reaches the ClusterVersion.
	ForceConflicts bool
}

// Validate reports an object that is not the one its place is for, and a Cluster that nobody read.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInputs, err)
		}
	}
	for _, is := range []struct {
		object          metav1.Object
		kind, namespace string
		name            string
		absent          bool
	}{
		{in.Operator, "Console", "", OperatorName, in.Operator == nil},
		{in.ClusterVersion, "ClusterVersion", "", ClusterVersionName, in.ClusterVersion == nil},
		{in.Console, "Deployment", Namespace, ConsoleName, in.Console == nil},
		{in.Downloads, "Deployment", Namespace, DownloadsName, in.Downloads == nil},
		{in.ConsoleBudget, "PodDisruptionBudget", Namespace, ConsoleName, in.ConsoleBudget == nil},
		{in.DownloadsBudget, "PodDisruptionBudget", Namespace, DownloadsName, in.DownloadsBudget == nil},
	} {
		if !is.absent && (is.object.GetNamespace() != is.namespace || is.object.GetName() != is.name) {
			return fmt.Errorf("%w: %s %s/%s is not %s/%s", ErrInputs, is.kind, is.object.GetNamespace(), is.object.GetName(), is.namespace, is.name)
		}
	}
	return nil
}

// workload is one of the two Deployments with what its decision needs.
type workload struct {
	Inputs
	name   string
	live   *appsv1.Deployment
	budget *policyv1.PodDisruptionBudget
}

func (in Inputs) console() workload {
	return workload{Inputs: in, name: ConsoleName, live: in.Console, budget: in.ConsoleBudget}
}

func (in Inputs) downloads() workload {
	return workload{Inputs: in, name: DownloadsName, live: in.Downloads, budget: in.DownloadsBudget}
}

// gone tells whether there is no Deployment to write to. One that is being deleted is not brought back by a write.
func (w workload) gone() bool { return w.live == nil || w.live.DeletionTimestamp != nil }
