package etcdguard

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

var (
	// ErrMember is returned for a member that is not among the members, and for a list in which a member is there twice or has no ID.
	ErrMember = errors.New("no such member")
	// ErrMinimum is returned for a Minimum that MinimumMembers did not make.
	ErrMinimum = errors.New("empty Minimum: make it with MinimumMembers")
)

// Member is one entry of etcd's own list of members.
type Member struct {
	// ID is etcd's. A member that was added and never started has no name yet, but it has an ID.
	ID uint64
	// Healthy tells that the member answers a linearizable read.
	Healthy bool
	// Learner tells that it has no vote.
	Learner bool
}

// Quorum is how many of n voting members must agree: more than half. Of 0 members it is 1, which is never reached.
func Quorum(n int) int { return max(n, 0)/2 + 1 }

// Tolerated is how many of n healthy voting members may stop without etcd losing its quorum: floor((n-1)/2), and never less
// than 0.
func Tolerated(n int) int { return max(n-1, 0) / 2 }

// Spare is how many more of the healthy voting members may stop at this moment. Members that are down already are counted
// against it.
func Spare(members []Member) int {
	voters, healthy := votes(members)
	return max(healthy-Quorum(voters), 0)
}

// votes counts the voting members, and those of them that are healthy.
func votes(members []Member) (voters, healthy int) {
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

// Minimum is how many healthy voting members the scaling of etcd must leave. MinimumMembers makes one.
type Minimum struct {
	// Members is their number; 0 where etcd is not in this cluster.
	Members int
	// Override is what the deprecated override said; report its Deprecation.
	Override Override

	// mode is the topology that decided. It is empty in a Minimum that MinimumMembers did not make.
	mode configv1.TopologyMode
}

// MinimumMembers is the rule by the control-plane topology of the cluster, as topology.FromInfrastructure read it: 3 on HighlyAvailable
// and HighlyAvailableArbiter (the arbiter is a member), 2 on DualReplica, 1 on SingleReplica, 0 on External, and 3 where the
// Infrastructure says nothing or something unknown. overrides are the raw bytes of spec.unsupportedConfigOverrides of the Etcd: where
// OverrideKey is true in them, the minimum is 1 wherever there is an etcd.
//
// The topology takes the place of the override (R-ETC-1). Upstream kept both, counts External as HighlyAvailable
// (U-ETC-1), and refuses an empty topology, also with the override set (U-ETC-2).
//
// Errors: ErrNoTopology, and ErrOverride, in every mode, for an override that cannot be read.
func MinimumMembers(cluster topology.Cluster, overrides []byte) (Minimum, error) {
	if err := cluster.Validate(); err != nil {
		return Minimum{}, err
	}
	override, err := ReadOverride(overrides)
	if err != nil {
		return Minimum{}, err
	}
	minimum := Minimum{Members: expectedMembers(modeOf(cluster)), Override: override, mode: modeOf(cluster)}
	if override.Value {
		minimum.Members = min(minimum.Members, 1)
	}
	return minimum, nil
}

// expectedMembers is how many members a topology expects at the least.
func expectedMembers(mode configv1.TopologyMode) int {
	switch topology.ReadingOf(mode).Mode {
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

// Why a member must stay. The texts are stable.
const (
	// NoQuorum: etcd cannot even agree on the removal.
	NoQuorum = "Etcd has no quorum, so it cannot agree on removing a member; bring a member back first"
	// QuorumWouldBeLost: the members that are left would not be enough.
	QuorumWouldBeLost = "Without this member etcd would lose its quorum; bring an unhealthy member back, or remove that one first"
	// BelowMinimum: etcd would work on, but with less than the topology asks for.
	BelowMinimum = "Without this member etcd would have fewer healthy members than the topology asks for; add a member first"
)

// Removal is the answer to SafeToRemove.
type Removal struct {
	Safe bool
	// Obstacle is NoQuorum, QuorumWouldBeLost or BelowMinimum; empty when it is safe.
	Obstacle string
	// Deprecation is what to tell about the override; empty when it is absent.
	Deprecation string
}

// SafeToRemove tells whether the member may be taken out of etcd: the members must be able to agree on it, those that are left
// must have a quorum, and at least minimum.Members of them must be healthy. The last is not asked where the member is
// unhealthy or a learner: taking it out takes no healthy voter away, and is how it is replaced.
//
// The override, and SingleReplica, lower the minimum. They never make it safe to lose quorum, which upstream leaves to the
// caller (U-ETC-3).
//
// Errors: ErrMinimum, ErrMember.
func SafeToRemove(minimum Minimum, members []Member, id uint64) (Removal, error) {
	if minimum.mode == "" {
		return Removal{}, ErrMinimum
	}
	member, err := find(members, id)
	if err != nil {
		return Removal{}, err
	}
	removal := Removal{Deprecation: minimum.Override.Deprecation()}
	voters, healthy := votes(members)
	agree := healthy >= Quorum(voters)
	takesHealth := member.Healthy && !member.Learner
	if !member.Learner {
		voters--
	}
	if takesHealth {
		healthy--
	}
	switch {
	case !agree:
		removal.Obstacle = NoQuorum
	case healthy < Quorum(voters):
		removal.Obstacle = QuorumWouldBeLost
	case takesHealth && healthy < minimum.Members:
		removal.Obstacle = BelowMinimum
	default:
		removal.Safe = true
	}
	return removal, nil
}

// find is the member with the ID.
func find(members []Member, id uint64) (Member, error) {
	if err := distinct(members); err != nil {
		return Member{}, err
	}
	for _, m := range members {
		if m.ID == id {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("%w: %x is not in the list of members", ErrMember, id)
}

// distinct reports a list that etcd cannot have given: its IDs are distinct, and none is 0.
func distinct(members []Member) error {
	seen := map[uint64]bool{}
	for _, m := range members {
		switch {
		case m.ID == 0:
			return fmt.Errorf("%w: a member in the list has no ID", ErrMember)
		case seen[m.ID]:
			return fmt.Errorf("%w: the member %x is there twice; read the list of members again", ErrMember, m.ID)
		}
		seen[m.ID] = true
	}
	return nil
}
