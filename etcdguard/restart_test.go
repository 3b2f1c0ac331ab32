package etcdguard_test

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/etcdguard"
)

// mayRestart is the rule over sets and not over numbers: what is left beside the member must be able to commit.
func mayRestart(mode configv1.TopologyMode, voters, healthy, member uint) string {
	n, others := bits.OnesCount(voters), healthy&^member
	switch {
	case voters&member == 0: // it has no vote
		return ""
	case mode == sr && voters == member:
		return ""
	case mode == dual && n == 2 && others != 0: // it fences the one that restarts
		return ""
	case mode == dual && n == 2:
		return etcdguard.RestartOfTheLast
	case commits(voters, others):
		return ""
	case commits(voters, healthy):
		return etcdguard.RestartStopsEtcd
	}
	return etcdguard.RestartWithoutQuorum
}

// Every topology, with up to six members, of which any may be unhealthy and any a learner, and every one asked about.
func TestSafeToRestart(t *testing.T) {
	const most = 6
	for _, mode := range allModes {
		for n := 1; n <= most; n++ {
			all := uint(1)<<n - 1
			for healthy := uint(0); healthy <= all; healthy++ {
				for learners := uint(0); learners <= all; learners++ {
					members := listed(all, healthy)
					for i := range members {
						members[i].Learner = learners&(1<<i) != 0
					}
					for i := range n {
						at := fmt.Sprintf("%q, %d members, healthy %b, learners %b, restart %d", mode, n, healthy, learners, i)
						got, err := etcdguard.SafeToRestart(clusterOf(mode), members, uint64(i+1))
						if mode == external {
							if got.Safe || !errors.Is(err, etcdguard.ErrMember) {
								t.Errorf("%s: %+v, %v; there is no etcd", at, got, err)
							}
							continue
						}
						obstacle := mayRestart(mode, all&^learners, healthy&^learners, 1<<i)
						if want := (etcdguard.Restart{Safe: obstacle == "", Obstacle: obstacle}); err != nil || got != want {
							t.Errorf("%s: %+v, %v; want %+v", at, got, err, want)
						}
					}
				}
			}
		}
	}
}

// The guard and the answer agree: a healthy member may be restarted exactly where a guard may be evicted.
func TestSafeToRestartAgreesWithTheGuard(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, arbiter, dual, empty, unknown} {
		eachHealth(func(n int, members, healthy uint) {
			if n < expected(mode) || healthy == 0 {
				return
			}
			budget := no(etcdguard.PodsDisruptionBudget(hostOf(mode, n)))
			want := evictable(t, budget, n, bits.OnesCount(healthy)) > 0
			for i := range n {
				if healthy&(1<<i) == 0 {
					continue
				}
				if got := no(etcdguard.SafeToRestart(clusterOf(mode), listed(members, healthy), uint64(i+1))); got.Safe != want {
					t.Errorf("%q, %d members, healthy %b, restart %d: %+v, a guard may be evicted: %t", mode, n, healthy, i, got, want)
				}
			}
		})
	}
}

func TestSafeToRestartErrors(t *testing.T) {
	for says, test := range map[string]struct {
		members []etcdguard.Member
		id      uint64
	}{
		"7 is not in the list": {membersOf(3, 3), 7},
		"1 is not in the list": {nil, 1},
		"2 is there twice":     {append(membersOf(3, 3), etcdguard.Member{ID: 2, Healthy: true}), 1},
		"has no ID":            {append(membersOf(3, 3), etcdguard.Member{Healthy: true}), 1},
	} {
		got, err := etcdguard.SafeToRestart(clusterOf(sr), test.members, test.id)
		if !errors.Is(err, etcdguard.ErrMember) || !strings.Contains(err.Error(), says) || got != (etcdguard.Restart{}) {
			t.Errorf("%+v, %v; want an error saying %q", got, err, says)
		}
	}
}
