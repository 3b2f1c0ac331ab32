// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

const maxMembers = 9

func hasQuorum(members, healthy uint) bool {
	return 2*bits.OnesCount(members&healthy) > bits.OnesCount(members)
}

func listed(members, healthy uint) []etcdguard.Member {
	var list []etcdguard.Member
	for i := range maxMembers {
		if members&(1<<i) != 0 {
			list = append(list, etcdguard.Member{ID: uint64(i + 1), Healthy: healthy&(1<<i) != 0})
		}
	}
	return list
}

// eachHealth calls f with 1 to most members in every state of health.
func eachHealth(most int, f func(n int, members, healthy uint)) {
	for n := 1; n <= most; n++ {
		members := uint(1)<<n - 1
		for healthy := uint(0); healthy <= members; healthy++ {
			f(n, members, healthy)
		}
	}
}

func TestFailureTolerance(t *testing.T) {
	for n := 1; n <= maxMembers; n++ {
		all := uint(1)<<n - 1
		if want := tolerance(all, all); etcdguard.FailureTolerance(n) != want || etcdguard.Quorum(n) != n-want {
			t.Errorf("%d members: %d may stop, the quorum is %d; want %d and %d", n, etcdguard.FailureTolerance(n), etcdguard.Quorum(n), want, n-want)
		}
	}
	for _, n := range []int{-1, 0} {
		if etcdguard.FailureTolerance(n) != 0 || etcdguard.Quorum(n) < 1 {
			t.Errorf("%d members: %d may stop, the quorum is %d", n, etcdguard.FailureTolerance(n), etcdguard.Quorum(n))
		}
	}
}

// tolerance returns how many healthy members may stop without a loss of quorum.
func tolerance(members, healthy uint) int {
	most := 0
	for stopped := uint(0); stopped <= members; stopped++ {
		if stopped&^healthy == 0 && hasQuorum(members, healthy&^stopped) {
			most = max(most, bits.OnesCount(stopped))
		}
	}
	return most
}

// mayRemove and mayRestart are the rules, independent of the code. The result is the reason why not.
func mayRemove(mode configv1.TopologyMode, voters, healthy, member uint) string {
	switch {
	case !hasQuorum(voters, healthy):
		return etcdguard.NoQuorum
	case !hasQuorum(voters&^member, healthy&^member):
		return etcdguard.QuorumWouldBeLost
	case healthy&member != 0 && bits.OnesCount(healthy&^member) < fixture.ExpectedMembers(mode):
		return etcdguard.BelowMinimum
	}
	return ""
}

func mayRestart(mode configv1.TopologyMode, voters, healthy, member uint) string {
	fencing := mode == topologytest.Dual && bits.OnesCount(voters) == 2
	switch others := healthy &^ member; {
	case voters&member == 0, mode == topologytest.SR && voters == member, fencing && others != 0, hasQuorum(voters, others):
		return ""
	case fencing:
		return etcdguard.RestartOfLastHealthy
	case hasQuorum(voters, healthy):
		return etcdguard.RestartStopsEtcd
	}
	return etcdguard.RestartWithoutQuorum
}

func TestSafe(t *testing.T) {
	check := func(at, reason string, got etcdguard.Verdict, err error) {
		if want := (etcdguard.Verdict{Safe: reason == "", Reason: reason}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", at, got, err, want)
		}
	}
	for _, mode := range topologytest.AllModes {
		eachHealth(6, func(n int, all, healthy uint) {
			for learners := uint(0); learners <= all; learners++ {
				members := listed(all, healthy)
				for i := range members {
					members[i].Learner = learners&(1<<i) != 0
				}
				for i := range n {
					at := fmt.Sprintf("%q, %d members, healthy %b, learners %b, member %d", mode, n, healthy, learners, i)
					remove, err := etcdguard.SafeToRemove(fixture.ClusterOf(mode), nil, members, uint64(i+1))
					check(at+" removed", mayRemove(mode, all&^learners, healthy&^learners, 1<<i), remove, err)
					restart, err := etcdguard.SafeToRestart(fixture.ClusterOf(mode), members, uint64(i+1))
					if mode != topologytest.External {
						check(at+" restarted", mayRestart(mode, all&^learners, healthy&^learners, 1<<i), restart, err)
					} else if restart.Safe || !errors.Is(err, etcdguard.ErrMember) {
						t.Errorf("%s restarted: %+v, %v; there is no etcd", at, restart, err)
					}
				}
			}
		})
	}
}

func TestMemberErrors(t *testing.T) {
	for message, test := range map[string]struct {
		members []etcdguard.Member
		id      uint64
	}{
		"7 is not in the list": {fixture.MembersOf(3, 3), 7},
		"1 is not in the list": {nil, 1},
		"1 is listed twice":    {append(fixture.MembersOf(3, 3), etcdguard.Member{ID: 1}), 1},
		"2 is listed twice":    {append(fixture.MembersOf(3, 3), etcdguard.Member{ID: 2, Healthy: true}), 1},
		"has no ID":            {append(fixture.MembersOf(3, 3), etcdguard.Member{Healthy: true}), 0},
	} {
		remove, inRemove := etcdguard.SafeToRemove(fixture.ClusterOf(topologytest.HA), nil, test.members, test.id)
		restart, inRestart := etcdguard.SafeToRestart(fixture.ClusterOf(topologytest.SR), test.members, test.id)
		for _, err := range []error{inRemove, inRestart} {
			if !errors.Is(err, etcdguard.ErrMember) || !strings.Contains(err.Error(), message) {
				t.Errorf("%v; want an error with %q", err, message)
			}
		}
		if remove.Safe || restart.Safe {
			t.Errorf("%s: remove %+v, restart %+v", message, remove, restart)
		}
	}
}

// TestMinimumMembers shows R-ETC-1: the topology determines the minimum. The override lowers it, but a quorum is still
// required.
func TestMinimumMembers(t *testing.T) {
	for mode, want := range map[configv1.TopologyMode]int{topologytest.HA: 3, topologytest.Arbiter: 3, topologytest.Dual: 2, topologytest.SR: 1, topologytest.External: 0, topologytest.Empty: 3, topologytest.Unknown: 3} {
		for overrides, lowered := range map[string]int{"": want, `{"` + fixture.OverrideKey + `":false}`: want, fixture.OverrideKey + ": 'true'\n": min(want, 1)} {
			got, deprecation, err := etcdguard.MinimumMembers(fixture.ClusterOf(mode), []byte(overrides))
			if err != nil || got != lowered || (deprecation == "") != (overrides == "") {
				t.Errorf("%q, %q: %d, %q, %v; want %d", mode, overrides, got, deprecation, err, lowered)
			}
		}
		unreadable := []byte(`{"` + fixture.OverrideKey + `":"maybe"}`)
		got, _, inMinimum := etcdguard.MinimumMembers(fixture.ClusterOf(mode), unreadable)
		remove, inRemove := etcdguard.SafeToRemove(fixture.ClusterOf(mode), unreadable, fixture.MembersOf(3, 3), 1)
		if wantErrors(t, string(mode), unsupportedconfig.ErrUnreadable, inMinimum, inRemove); got != 0 || remove.Safe {
			t.Errorf("%q, an unreadable override: %d, %+v", mode, got, remove)
		}
	}
	for healthy, safe := range map[uint]bool{0b111: true, 0b011: false, 0b001: false} {
		if got := fixture.Must(etcdguard.SafeToRemove(fixture.ClusterOf(topologytest.HA), []byte(`{"`+fixture.OverrideKey+`":true}`), listed(0b111, healthy), 1)); got.Safe != safe {
			t.Errorf("with the override, healthy %b: %+v", healthy, got)
		}
	}
}

// TestSafeToRestartAgreesWithTheGuard checks that a healthy member may be restarted if and only if a guard may be
// evicted.
func TestSafeToRestartAgreesWithTheGuard(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{topologytest.HA, topologytest.Arbiter, topologytest.Dual, topologytest.Empty, topologytest.Unknown} {
		eachHealth(maxMembers, func(n int, members, healthy uint) {
			if n < fixture.ExpectedMembers(mode) || healthy == 0 {
				return
			}
			want := evictable(fixture.Must(etcdguard.PodsDisruptionBudget(fixture.HostOf(mode, n))), n, bits.OnesCount(healthy)) > 0
			for i := range n {
				got := fixture.Must(etcdguard.SafeToRestart(fixture.ClusterOf(mode), listed(members, healthy), uint64(i+1)))
				if healthy&(1<<i) != 0 && got.Safe != want {
					t.Errorf("%q, %d members, healthy %b, restart %d: %+v, a guard may be evicted: %t", mode, n, healthy, i, got, want)
				}
			}
		})
	}
}
