// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// LeaderElectionClass holds the durations of client-go's LeaderElectionConfig, with library-go's values (U-TOP-10).
// LeaseDuration exceeds RenewDeadline by the tolerated clock skew, 30 s.
type LeaderElectionClass struct{ LeaseDuration, RenewDeadline, RetryPeriod time.Duration }

// LeaderElection returns durations that tolerate an outage of the API server of 180 s on SingleReplica, else of 78 s
// (R-OPS-4). Pass the control-plane topology, also for an operator that runs on workers.
func LeaderElection(mode configv1.TopologyMode) LeaderElectionClass {
	if SingleReplica(mode) {
		return LeaderElectionClass{LeaseDuration: 270 * time.Second, RenewDeadline: 240 * time.Second, RetryPeriod: 60 * time.Second}
	}
	return LeaderElectionClass{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}
