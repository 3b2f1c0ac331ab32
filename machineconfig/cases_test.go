// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology/topologytest"
)

var allModes = []configv1.TopologyMode{topologytest.HA, topologytest.Arbiter, topologytest.SR, topologytest.Dual, topologytest.External, topologytest.Empty, topologytest.Unknown}

func notReady(n corev1.Node) corev1.Node {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	return n
}

func withMaxUnavailable(value string) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) {
		if value != "" {
			p.Spec.MaxUnavailable = ptr.To(intstr.Parse(value))
		}
	}
}
