// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"errors"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/modules"
)

// hasLeader checks that a process holds the Lease with the durations of a single node, and sets holder.
func (c *cluster) hasLeader(holder *string) func() error {
	return func() error {
		c.Helper()
		lease := modules.Find[coordinationv1.Lease](c.Cluster, modules.Object("coordination.k8s.io/v1", "Lease", modules.SystemNamespace,
			"ingress-controller.sno.solonode.github.io"))
		if lease == nil {
			return errors.New("there is no Lease")
		}
		*holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds != 270 || *holder == "" {
			return fmt.Errorf("%q holds the Lease for %d s, want 270 s", *holder, seconds)
		}
		return nil
	}
}

// Only the leader writes. It keeps the Lease and converges when its connection to the API server breaks in a reconcile.
func TestLeader(t *testing.T) {
	const second = "second-controller"
	c := newCluster(t, sr, sr)
	c.Permit(second)
	c.create("default", two)
	proxy := c.Server.Proxy(c)
	leader := c.StartAs(suite.Program(), proxy.Address(), "--leader-elect")
	c.Eventually("it is pinned", c.pinned(one))
	var before, after string
	c.Eventually("there is a leader", c.hasLeader(&before))
	follower := c.StartAs(second, "", "--leader-elect")
	follower.Ready()
	follower.WaitForLog("Attempting to acquire leader lease")

	w := c.writes(second, func() {
		for round := range 4 {
			want, mode := c.released(two), configv1.HighlyAvailableTopologyMode
			if round%2 == 1 {
				want, mode = c.pinned(one), sr
			}
			written := len(c.Server.Writes(t, suite.User()))
			c.SetTopology(sr, mode)
			if round < 2 {
				c.Eventually("a request has arrived, so that its answer is lost", func() error {
					if len(c.Server.Writes(t, suite.User())) == written {
						return errors.New("none has")
					}
					return nil
				})
			}
			proxy.Cut()
			if code, _, err := leader.Probe("/healthz"); err != nil || code != 200 {
				t.Errorf("/healthz without an API server: %d, %v", code, err)
			}
			proxy.Restore(t)
			c.Eventually("the leader converges", want)
		}
	})
	if n := len(w.spec) + len(w.status) + len(w.events) + len(w.others); n > 0 {
		t.Errorf("the follower wrote: %+v", w)
	}
	if n, err := follower.Metric("controller_runtime_reconcile_total"); err != nil || n != 0 {
		t.Errorf("the follower reconciled %v times, %v", n, err)
	}
	follower.Stop()
	c.Eventually("there is a leader", c.hasLeader(&after))
	if before != after {
		t.Errorf("the holder of the Lease changed from %q to %q", before, after)
	}
	leader.Stop()
}
