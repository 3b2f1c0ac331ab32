// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestApproverOffNotApplicable(t *testing.T) {
	state := func(mode configv1.TopologyMode, machines int) *State {
		return &State{
			Infrastructure: &configv1.Infrastructure{Status: configv1.InfrastructureStatus{ControlPlaneTopology: mode}}, Machines: machines,
			Deployments: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Namespace: stockApprover.Namespace, Name: stockApprover.Name}}},
		}
	}
	for name, test := range map[string]struct {
		state *State
		why   string
	}{
		"single, without Machines":           {state(configv1.SingleReplicaTopologyMode, 0), ""},
		"single, with Machines":              {state(configv1.SingleReplicaTopologyMode, 1), "Machines exist, which are the second source"},
		"highly available, without Machines": {state(configv1.HighlyAvailableTopologyMode, 0), "the control plane is not SingleReplica"},
	} {
		for _, s := range []*State{test.state, test.state.DeepCopy()} {
			if why := approverOff().NotApplicable(s); why != test.why {
				t.Errorf("%s: %q, want %q", name, why, test.why)
			}
		}
	}
}
