// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	_ "embed"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// StockApproverNamespace is the namespace of the stock approver's Deployment.
	StockApproverNamespace = "openshift-cluster-machine-approver"
	// StockApprover is the name of its Deployment and of its ClusterOperator.
	StockApprover = "machine-approver"
)

//go:embed stock-approver.yaml
var stockApprover []byte

// InstallStockApprover creates the stock approver's Deployment for clusters without a controller that does.
func (s *ScenarioCluster) InstallStockApprover(ctx context.Context) error {
	return installStockApprover(ctx, s.Cluster)
}

// installStockApprover creates the stock approver as the cluster-version-operator does, and its ClusterOperator as the
// running approver writes it. Its pod does nothing. Its ConfigMap is optional and not created. An external control
// plane has no approver in the cluster.
func installStockApprover(ctx context.Context, c *embedded.Cluster) error {
	infrastructure := &configv1.Infrastructure{}
	if err := c.Client().Get(ctx, client.ObjectKey{Name: scenario.ClusterName}, infrastructure); err != nil {
		return fmt.Errorf("install the stock approver: read the Infrastructure: %w", err)
	}
	if err := c.EnsureNamespace(ctx, StockApproverNamespace); err != nil {
		return err
	}
	if infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return nil
	}
	deployment, operator := &appsv1.Deployment{}, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: StockApprover}}
	if err := yaml.UnmarshalStrict(stockApprover, deployment); err != nil {
		return fmt.Errorf("install the stock approver: %w", err)
	}
	for _, object := range []client.Object{operator, deployment} {
		if err := c.Client().Create(ctx, object, client.FieldOwner(scenario.VersionOperatorManager)); apierrors.IsAlreadyExists(err) {
			return nil // installed already
		} else if err != nil {
			return fmt.Errorf("install the stock approver: %w", err)
		}
	}
	now := metav1.Now()
	for _, kind := range []configv1.ClusterStatusConditionType{configv1.OperatorAvailable, configv1.OperatorDegraded, configv1.OperatorProgressing, configv1.OperatorUpgradeable} {
		status := configv1.ConditionFalse
		if kind == configv1.OperatorAvailable || kind == configv1.OperatorUpgradeable {
			status = configv1.ConditionTrue
		}
		operator.Status.Conditions = append(operator.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: "AsExpected", LastTransitionTime: now,
		})
	}
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: scenario.Release}}
	operator.Status.RelatedObjects = []configv1.ObjectReference{
		{Resource: "namespaces", Name: StockApproverNamespace},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"},
	}
	if err := c.Client().Status().Update(ctx, operator, client.FieldOwner(StockApprover)); err != nil {
		return fmt.Errorf("write the status of ClusterOperator %s: %w", StockApprover, err)
	}
	return nil
}
