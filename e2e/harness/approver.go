package harness

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// StockApproverNamespace is where the stock machine approver is.
	StockApproverNamespace = "openshift-cluster-machine-approver"
	// StockApprover is the name of its Deployment, and of its ClusterOperator.
	StockApprover = "machine-approver"
)

// InstallStockApprover brings the stock approver's Deployment where no controller of ours did.
func (r *Rig) InstallStockApprover(ctx context.Context) error {
	return installStockApprover(ctx, r.Cluster)
}

// installStockApprover brings the stock approver as the cluster-version-operator does. What runs of it is a pod that does nothing. Where the
// control plane is elsewhere, so is the approver.
func installStockApprover(ctx context.Context, c *embedded.Cluster) error {
	infrastructure := &configv1.Infrastructure{}
	if err := c.Client().Get(ctx, client.ObjectKey{Name: scenario.ClusterName}, infrastructure); err != nil {
		return fmt.Errorf("bring the stock approver: read the Infrastructure: %w", err)
	}
	if err := c.EnsureNamespace(ctx, StockApproverNamespace); err != nil {
		return err
	}
	if infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return nil
	}
	labels := map[string]string{"app": StockApprover}
	for _, object := range []client.Object{
		&configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: StockApprover}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: StockApproverNamespace, Name: StockApprover},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
						Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
						Containers:   []corev1.Container{{Name: "machine-approver-controller", Image: "machine-approver"}},
					},
				},
			},
		},
	} {
		if err := c.Client().Create(ctx, object, client.FieldOwner(scenario.VersionOperatorManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bring the stock approver: %w", err)
		}
	}
	return nil
}
