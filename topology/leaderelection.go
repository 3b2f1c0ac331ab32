package topology

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// LeaderElectionClass holds the durations of leader election by Lease. The numbers are library-go's
// (U-TOP-10): an operator that takes them behaves like the rest of the cluster.
type LeaderElectionClass struct {
	// LeaseDuration is how long the others wait before they take over from a leader that fell silent.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it gives up. LeaseDuration exceeds it by the clock skew that
	// is tolerated, 30 s.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between tries.
	RetryPeriod time.Duration
}

// LeaderElection is 270/240/60 s on SingleReplica, else 137/107/26 s (lease, renew, retry). A single API server is away
// while it rolls out, for a minute or more (R-OPS-4); with the ordinary durations leaders would give up and restart each time.
//
// Pass the topology that says how many API servers there are, which is that of the control plane, also for an operator
// that runs on workers. Client-go reads the durations once, so a change of topology takes effect with the next start.
func LeaderElection(mode configv1.TopologyMode) LeaderElectionClass {
	if SingleReplica(mode) {
		return LeaderElectionClass{LeaseDuration: 270 * time.Second, RenewDeadline: 240 * time.Second, RetryPeriod: 60 * time.Second}
	}
	return LeaderElectionClass{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}

// ToleratedOutage is how long the API server can be away, starting at the worst moment, without the leader losing its
// lease: 180 s on SingleReplica, else 78 s. Zero for a class without a retry period.
func (c LeaderElectionClass) ToleratedOutage() time.Duration {
	if c.RetryPeriod <= 0 {
		return 0
	}
	lastRetry := c.RenewDeadline / c.RetryPeriod * c.RetryPeriod
	return max(0, lastRetry-c.RetryPeriod)
}

// WorstAcquisition is how long it takes at worst until somebody leads again after a leader died without releasing its
// lease: 330 s on SingleReplica, else 163 s.
func (c LeaderElectionClass) WorstAcquisition() time.Duration {
	return c.LeaseDuration + c.RetryPeriod
}
