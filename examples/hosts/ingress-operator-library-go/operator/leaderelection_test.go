// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/library-go/pkg/config/leaderelection"

	"github.com/solonode/sno/topology"
)

// topology has library-go's durations without importing library-go. Only this module may import both and compare them.
func TestLeaderElectionIsLibraryGos(t *testing.T) {
	ordinary := leaderelection.LeaderElectionDefaulting(configv1.LeaderElection{}, "namespace", "name")
	singleNode := leaderelection.LeaderElectionSNOConfig(ordinary)
	for _, test := range []struct {
		mode configv1.TopologyMode
		want configv1.LeaderElection
	}{
		{configv1.SingleReplicaTopologyMode, singleNode},
		{configv1.HighlyAvailableTopologyMode, ordinary},
		{configv1.HighlyAvailableArbiterMode, ordinary},
		{configv1.DualReplicaTopologyMode, ordinary},
		{configv1.ExternalTopologyMode, ordinary},
		{"", ordinary},
		{"Lunar", ordinary},
	} {
		want := topology.LeaderElectionClass{
			LeaseDuration: test.want.LeaseDuration.Duration, RenewDeadline: test.want.RenewDeadline.Duration, RetryPeriod: test.want.RetryPeriod.Duration,
		}
		if diff := cmp.Diff(want, topology.LeaderElection(test.mode)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.mode, diff)
		}
	}
	if ordinary.LeaseDuration == singleNode.LeaseDuration {
		t.Errorf("library-go has one class, %s", ordinary.LeaseDuration.Duration)
	}
}
