package manager

import (
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// settled is how long a topology must stand before the leader election follows it. The Lease is good in the meantime, and what
// the modules have to do about the change is done before the process gives it up.
const settled = 2 * time.Second

// reelection decides when the leader election begins anew with other durations.
type reelection struct {
	// running are the durations of the election that runs.
	running topology.LeaderElectionClass
	// begin is called with the topology that asks for others.
	begin func(configv1.TopologyMode)

	mu      sync.Mutex
	pending *time.Timer
}

// observe is told the topology each time that it was read. One that is read again need not stand longer for it.
func (r *reelection) observe(mode configv1.TopologyMode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch other := topology.LeaderElection(mode) != r.running; {
	case other && r.pending == nil:
		r.pending = time.AfterFunc(settled, func() { r.begin(mode) })
	case !other:
		r.stop()
	}
}

// end forgets what is pending.
func (r *reelection) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

func (r *reelection) stop() {
	if r.pending != nil {
		r.pending.Stop()
		r.pending = nil
	}
}
