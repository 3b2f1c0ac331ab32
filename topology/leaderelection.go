package topology

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// LeaderElectionClass holds the durations of leader election by Lease, as client-go's LeaderElectionConfig has them. The numbers are
// library-go's (U-TOP-10). LeaseDuration exceeds RenewDeadline by the clock skew that is tolerated, 30 s.
type LeaderElectionClass struct{ LeaseDuration, RenewDeadline, RetryPeriod time.Duration }

// LeaderElection returns durations that tolerate an API server that is away while it rolls out: for 180 s on SingleReplica, else for
// 78 s (R-OPS-4). Pass the topology of the control plane, also for an operator that runs on workers.
func LeaderElection(mode configv1.TopologyMode) LeaderElectionClass {
	if SingleReplica(mode) {
		return LeaderElectionClass{LeaseDuration: 270 * time.Second, RenewDeadline: 240 * time.Second, RetryPeriod: 60 * time.Second}
	}
	return LeaderElectionClass{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}
