// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var stockApprover = types.NamespacedName{Namespace: "openshift-cluster-machine-approver", Name: "machine-approver"}

const (
	// ApproverFile is the key of the stock approver's ConfigMap.
	ApproverFile     = "config.yaml"
	approverConfig   = "ConfigMap openshift-cluster-machine-approver/machine-approver-config"
	approverOperator = "ClusterOperator machine-approver"
	// approverFlow is the condition by which an operator reports whether it approves client certificates. The stock
	// approver has none.
	approverFlow = "NodeClientApprovalEnabled"
)

func approverAbsent(s *State) string {
	return unless(s.Deployment(stockApprover.Namespace, stockApprover.Name) != nil, "the machine approver is not deployed")
}

// clientFlowOff reports whether the configuration turns off approvals of client certificates.
func clientFlowOff(s *State) (bool, error) {
	if s.Approver == nil {
		return false, nil
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(s.Approver.Data[ApproverFile]), &config); err != nil {
		return false, fmt.Errorf("%w: %s: config.yaml is not YAML: %w", ErrRead, approverConfig, err)
	}
	off, _, err := unstructured.NestedBool(config, "nodeClientCert", "disabled")
	if err != nil {
		return false, fmt.Errorf("%w: %s: nodeClientCert.disabled: %w", ErrRead, approverConfig, err)
	}
	return off, nil
}

// reportedFlow returns the operator's condition about its flow for client certificates, or an empty string.
func reportedFlow(s *State) configv1.ConditionStatus {
	if s.ApproverOperator == nil {
		return ""
	}
	for _, c := range s.ApproverOperator.Status.Conditions {
		if c.Type == approverFlow {
			return c.Status
		}
	}
	return ""
}

func configureApprover(text string) func(*Input) bool {
	return onState(func(s *State) {
		s.Approver = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: stockApprover.Namespace, Name: "machine-approver-config"}, Data: map[string]string{ApproverFile: text}}
		s.ApproverOperator = nil
	})
}

func reportFlow(status configv1.ConditionStatus) func(*Input) bool {
	return onState(func(s *State) {
		s.Approver, s.ApproverOperator = nil, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: stockApprover.Name}}
		s.ApproverOperator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: approverFlow, Status: status, LastTransitionTime: metav1.Now().Rfc3339Copy()},
		}
	})
}
