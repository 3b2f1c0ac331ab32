package controller_test

import (
	"errors"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"
)

// holds says whether somebody holds the Lease for the given number of seconds, and who.
func (c *cluster) holds(seconds int32, holder *string) func() error {
	return func() error {
		lease, err := c.lease()
		if err != nil {
			return err
		}
		got, who := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0), ptr.Deref(lease.Spec.HolderIdentity, "")
		if got != seconds || who == "" {
			return fmt.Errorf("%q holds the Lease for %d s, want %d s", who, got, seconds)
		}
		*holder = who
		return nil
	}
}

// The durations of the leader election follow the control plane's topology at run time, in one process, and the controller goes on.
func TestLeaderElectionFollowsTheTopology(t *testing.T) {
	c := sharedCluster(t, ha, ha)
	c.installController(2)
	p := c.start("--leader-elect")
	p.Ready()
	var holder string
	c.eventually("it leads with the ordinary durations", c.holds(137, &holder))
	c.eventually("it works", c.shows("False", "NotNeeded"))
	for _, step := range []struct {
		mode    configv1.TopologyMode
		seconds int32
		check   func() error
	}{
		{sr, 270, c.pinned(one)},
		{ha, 137, c.released(two)},
		{sr, 270, c.pinned(one)},
	} {
		c.flip(step.mode, step.mode)
		c.eventually(fmt.Sprintf("it leads with the durations of %s", step.mode), c.holds(step.seconds, &holder))
		c.eventually("it goes on", step.check)
		p.Ready()
	}
	p.Stop()
	c.leaseReleased()
}

// leaseReleased says that the Lease was given up, so that the next process need not wait for it to run out.
func (c *cluster) leaseReleased() {
	c.Helper()
	c.eventually("the Lease is released", func() error {
		lease, err := c.lease()
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
			err = fmt.Errorf("%q still holds the Lease", *lease.Spec.HolderIdentity)
		}
		return err
	})
}

// Of two processes only the leader writes; the other is ready, with its caches filled.
func TestOnlyTheLeaderWrites(t *testing.T) {
	const second = "second-controller"
	c := sharedCluster(t, sr, sr)
	c.permit(second)
	c.installController(2)
	leader := c.start("--leader-elect")
	c.eventually("it is pinned", c.pinned(one))
	var holder, after string
	c.eventually("it leads", c.holds(270, &holder))

	follower := c.startAs(second, "", "--leader-elect")
	follower.Ready()
	follower.Says("Attempting to acquire leader lease")
	w := c.writes(second, func() {
		c.flip(sr, ha)
		c.eventually("the leader lets go", c.released(two))
		c.flip(sr, sr)
		c.eventually("the leader pins", c.pinned(one))
		leader.touch(2)
	})
	if n := len(w.spec) + len(w.status) + len(w.events) + len(w.others); n > 0 {
		t.Errorf("the follower wrote: %+v", w)
	}
	if n, err := follower.Metric("controller_runtime_reconcile_total"); err != nil || n != 0 {
		t.Errorf("the follower reconciled %v times, %v", n, err)
	}
	if err := c.holds(270, &after)(); err != nil || after != holder {
		t.Errorf("the Lease went from %q to %q: %v", holder, after, err)
	}
	follower.Stop()
	if err := c.holds(270, &after)(); err != nil || after != holder {
		t.Errorf("a follower that stops must not touch the Lease: from %q to %q: %v", holder, after, err)
	}
	leader.Stop()
	c.leaseReleased()
}

// The connection to the API server breaks in the middle of reconciles, as when it is killed. The controller stays, keeps its
// Lease, and converges.
func TestServerGoesAway(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(2)
	line := c.server.Line(c)
	p := c.startAs(account, line.Address(), "--leader-elect")
	c.eventually("it is pinned", c.pinned(one))
	var before, after string
	c.eventually("it leads", c.holds(270, &before))
	for round := range 4 {
		want, mode := c.released(two), configv1.HighlyAvailableTopologyMode
		if round%2 == 1 {
			want, mode = c.pinned(one), sr
		}
		written := len(c.server.Writes(t, user(account)))
		c.flip(sr, mode)
		if round < 2 {
			// A request has arrived; its answer is lost.
			c.eventually("a write is on its way", func() error {
				if len(c.server.Writes(t, user(account))) == written {
					return errors.New("it is not")
				}
				return nil
			})
		}
		line.Cut()
		if code, _, err := p.Probe("/healthz"); err != nil || code != 200 {
			t.Errorf("/healthz without an API server: %d, %v", code, err)
		}
		line.Mend(t)
		c.eventually("it converges", want)
	}
	c.eventually("it still leads", c.holds(270, &after))
	if before != after {
		t.Errorf("the Lease was lost: it went from %q to %q", before, after)
	}
	p.Stop()
}
