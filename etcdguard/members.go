// SPDX-License-Identifier: Apache-2.0

package etcdguard

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

// ErrMember is returned for a member that is not in the list, and for an impossible list.
var ErrMember = errors.New("no such member")

// Member is an entry of etcd's list of members.
type Member struct {
	ID      uint64
	Healthy bool // it answers a linearizable read
	Learner bool // it has no vote
}

// quorum returns how many of n voting members must agree. For 0 members it is 1, which is never reached.
func quorum(n int) int { return max(n, 0)/2 + 1 }

// failureTolerance returns how many of n healthy voting members may stop without a loss of quorum: floor((n-1)/2).
func failureTolerance(n int) int { return max(n-1, 0) / 2 }

// Votes returns how many members have a vote, and how many of these are healthy.
func Votes(members []Member) (voters, healthy int) {
	for _, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if m.Healthy {
			healthy++
		}
	}
	return voters, healthy
}

// MinimumMembers returns how many healthy voting members a scale-down of etcd must leave (R-ETC-1): 2 with DualReplica,
// 1 with SingleReplica, 0 with External, else 3; at most 1 if OverrideKey is true in the Etcd's raw overrides (U-ETC-1,
// U-ETC-2), which deprecation reports. Errors: ErrNoTopology, unsupportedconfig.ErrUnreadable.
func MinimumMembers(cluster topology.Cluster, overrides []byte) (minimum int, deprecation string, err error) {
	if err := cluster.Validate(); err != nil {
		return 0, "", err
	}
	override, _, err := unsupportedconfig.Read(overrides, OverrideKey)
	if err != nil {
		return 0, "", err
	}
	minimum = ExpectedMembers(modeOf(cluster))
	if override.Value {
		minimum = min(minimum, 1)
	}
	return minimum, override.Deprecation(OverrideKey), nil
}

// ExpectedMembers returns how many members a complete cluster of the topology has at least.
func ExpectedMembers(mode configv1.TopologyMode) int {
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return 1
	case configv1.DualReplicaTopologyMode:
		return 2
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 3
	case configv1.ExternalTopologyMode:
		return 0
	}
	return 3
}

// Reasons why a member must not be removed or restarted. The texts are stable.
const (
	NoQuorum          = "Etcd has no quorum, so it cannot agree on removing a member; bring a member back first"
	QuorumWouldBeLost = "Without this member etcd would lose its quorum; bring an unhealthy member back, or remove that one first"
	BelowMinimum      = "Without this member etcd would have fewer healthy members than the topology asks for; add a member first"

	RestartStopsEtcd     = "Etcd would have no quorum while this member restarts; bring an unhealthy member back, or add one, first"
	RestartWithoutQuorum = "Fewer members of etcd are healthy than its quorum needs; bring the others back first"
	RestartOfLastHealthy = "The other one of the two members of etcd is not healthy, so none would be left; bring it back first"
)

// Verdict is the result of SafeToRemove and SafeToRestart.
type Verdict struct {
	Safe   bool
	Reason string // one of the constants above; empty when it is safe
}

// SafeToRemove reports whether the member may be removed: there is a quorum before and after it (U-ETC-3), and
// MinimumMembers healthy ones are left, unless an unhealthy member or a learner is removed. Errors: those of
// MinimumMembers, ErrMember.
func SafeToRemove(cluster topology.Cluster, overrides []byte, members []Member, id uint64) (Verdict, error) {
	minimum, _, err := MinimumMembers(cluster, overrides)
	if err != nil {
		return Verdict{}, err
	}
	member, err := find(members, id)
	if err != nil {
		return Verdict{}, err
	}
	voters, healthy := Votes(members)
	goingVoters, goingHealthy := Votes([]Member{member})
	switch left := healthy - goingHealthy; {
	case healthy < quorum(voters):
		return Verdict{Reason: NoQuorum}, nil
	case left < quorum(voters-goingVoters):
		return Verdict{Reason: QuorumWouldBeLost}, nil
	case goingHealthy > 0 && left < minimum:
		return Verdict{Reason: BelowMinimum}, nil
	}
	return Verdict{Safe: true}, nil
}

// SafeToRestart reports whether the member or its node may be restarted: the other healthy members are a quorum, or the
// topology accepts the outage (SingleReplica) or fences the member (DualReplica). Errors: ErrNoTopology; ErrMember,
// also with External.
func SafeToRestart(cluster topology.Cluster, members []Member, id uint64) (Verdict, error) {
	if err := cluster.Validate(); err != nil {
		return Verdict{}, err
	}
	mode := modeOf(cluster)
	if mode == configv1.ExternalTopologyMode {
		return Verdict{}, fmt.Errorf("%w: with the topology %s etcd is not in the cluster", ErrMember, mode)
	}
	member, err := find(members, id)
	if err != nil {
		return Verdict{}, err
	}
	voters, healthy := Votes(members)
	_, restarting := Votes([]Member{member})
	single := voters == 1 && mode == configv1.SingleReplicaTopologyMode
	switch others := healthy - restarting; {
	case member.Learner || single || others >= quorum(voters) || (fencing(mode, voters) && others == 1):
		return Verdict{Safe: true}, nil
	case fencing(mode, voters):
		return Verdict{Reason: RestartOfLastHealthy}, nil
	case healthy < quorum(voters):
		return Verdict{Reason: RestartWithoutQuorum}, nil
	}
	return Verdict{Reason: RestartStopsEtcd}, nil
}

func find(members []Member, id uint64) (Member, error) {
	if err := ValidateMembers(members); err != nil {
		return Member{}, err
	}
	i := slices.IndexFunc(members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, fmt.Errorf("%w: %x is not in the list of members", ErrMember, id)
	}
	return members[i], nil
}

// ValidateMembers returns an ErrMember for a list in which a member has no ID or is listed twice.
func ValidateMembers(members []Member) error {
	seen := map[uint64]bool{}
	for _, m := range members {
		switch {
		case m.ID == 0:
			return fmt.Errorf("%w: a member in the list has no ID", ErrMember)
		case seen[m.ID]:
			return fmt.Errorf("%w: member %x is listed twice; read the list of members again", ErrMember, m.ID)
		}
		seen[m.ID] = true
	}
	return nil
}
