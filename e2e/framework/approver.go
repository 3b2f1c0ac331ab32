// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// StockApproverNamespace is the namespace of the stock approver's Deployment.
	StockApproverNamespace = "openshift-cluster-machine-approver"
	// StockApprover is the name of its Deployment and of its ClusterOperator.
	StockApprover = "machine-approver"
)

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
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: StockApprover}}
	for _, object := range []client.Object{operator, stockApprover()} {
		if err := c.Client().Create(ctx, object, client.FieldOwner(scenario.VersionOperatorManager)); apierrors.IsAlreadyExists(err) {
			return nil // installed already
		} else if err != nil {
			return fmt.Errorf("install the stock approver: %w", err)
		}
	}
	now := metav1.Now()
	for _, each := range []struct {
		kind    configv1.ClusterStatusConditionType
		status  configv1.ConditionStatus
		message string
	}{
		{configv1.OperatorAvailable, configv1.ConditionTrue, "Cluster Machine Approver is available at " + scenario.Release},
		{configv1.OperatorDegraded, configv1.ConditionFalse, ""},
		{configv1.OperatorProgressing, configv1.ConditionFalse, ""},
		{configv1.OperatorUpgradeable, configv1.ConditionTrue, ""},
	} {
		operator.Status.Conditions = append(operator.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: each.kind, Status: each.status, Reason: "AsExpected", Message: each.message, LastTransitionTime: now,
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

// stockApprover returns the Deployment of the stock approver's manifests (U-APP-1).
func stockApprover() *appsv1.Deployment {
	labels := map[string]string{"app": StockApprover}
	const toleratedOutage = 120
	tolerate := func(taint string) corev1.Toleration {
		return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](toleratedOutage)}
	}
	requests := func(memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse(memory),
		}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: StockApproverNamespace, Name: StockApprover, Labels: map[string]string{"app": StockApprover, StockApprover: "true"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					HostNetwork: true, PriorityClassName: "system-cluster-critical",
					NodeSelector: map[string]string{scenario.MasterTaint: ""},
					Tolerations: []corev1.Toleration{
						{Key: scenario.MasterTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
						tolerate(corev1.TaintNodeUnreachable), tolerate(corev1.TaintNodeNotReady),
					},
					Containers: []corev1.Container{
						{
							Name: "kube-rbac-proxy", Image: "kube-rbac-proxy:1", Resources: requests("20Mi"),
							Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 9192, Protocol: corev1.ProtocolTCP}},
						},
						{
							Name: "machine-approver-controller", Image: "machine-approver:1", Resources: requests("50Mi"),
							Command: []string{"/usr/bin/machine-approver"},
							Args: []string{
								"--config=/var/run/configmaps/config/config.yaml", "-v=2", "--logtostderr", "--leader-elect=true", "--leader-elect-lease-duration=137s",
								"--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s", "--leader-elect-resource-namespace=" + StockApproverNamespace,
								"--api-group-version=machine.openshift.io/v1beta1", "--max-concurrent-reconciles=10",
							},
							VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/var/run/configmaps/config"}},
						},
					},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "machine-approver-config"}, Optional: ptr.To(true),
					}}}},
				},
			},
		},
	}
}
