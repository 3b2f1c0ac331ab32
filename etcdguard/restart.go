package etcdguard

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// Why a member must not be restarted now. The texts are stable.
const (
	// RestartStopsEtcd: etcd has a quorum, and would have none while the member is away.
	RestartStopsEtcd = "Etcd would have no quorum while this member restarts; bring an unhealthy member back, or add one, first"
	// RestartWithoutQuorum: fewer members are healthy than etcd needs, and this one may be the one that keeps it going.
	RestartWithoutQuorum = "Fewer members of etcd are healthy than its quorum needs; bring the others back first"
	// RestartOfTheLast: the other of two members that fence each other is not healthy.
	RestartOfTheLast = "The other one of the two members of etcd is not healthy, so none would be left; bring it back first"
)

// Restart is the answer to SafeToRestart.
type Restart struct {
	Safe bool
	// Obstacle is RestartStopsEtcd, RestartWithoutQuorum or RestartOfTheLast; empty when it is safe.
	Obstacle string
}

// SafeToRestart reports whether the member, or the node that it runs on, may be restarted now: whether the healthy members beside it are
// a quorum. members are all members of etcd with their health; the one that restarts stays in the list, so the quorum does not get
// smaller, as it does in SafeToRemove.
//
//	member                                                 may be restarted
//	a learner                                              yes: it has no vote
//	the only voter, SingleReplica                          yes: the outage is what the topology accepts
//	one of two voters, DualReplica                         when the other is healthy, which then goes on alone
//	any other voter                                        when the healthy voters beside it are a quorum of all voters
//
// An unhealthy voter is asked the same: it may be slow and vote all the same, and where the others are no quorum it may be the one that
// keeps etcd going. One that does not run at all takes nothing away by starting, and nobody need ask. The answer is for one member; after it
// has restarted, ask again for the next.
//
// Errors: ErrNoTopology; ErrMember for a member that is not in the list, for a list that etcd cannot have given, and with External,
// where etcd is not in the cluster.
func SafeToRestart(cluster topology.Cluster, members []Member, id uint64) (Restart, error) {
	if err := cluster.Validate(); err != nil {
		return Restart{}, err
	}
	mode := modeOf(cluster)
	if mode == configv1.ExternalTopologyMode {
		return Restart{}, fmt.Errorf("%w: with the topology %s etcd is not in the cluster", ErrMember, mode)
	}
	member, err := find(members, id)
	if err != nil {
		return Restart{}, err
	}
	voters, healthy := votes(members)
	others := healthy
	if member.Healthy {
		others--
	}
	switch {
	case member.Learner:
	case voters == 1 && mode == configv1.SingleReplicaTopologyMode:
	case fencing(mode, voters) && others == 1:
	case fencing(mode, voters):
		return Restart{Obstacle: RestartOfTheLast}, nil
	case others >= Quorum(voters):
	case healthy < Quorum(voters):
		return Restart{Obstacle: RestartWithoutQuorum}, nil
	default:
		return Restart{Obstacle: RestartStopsEtcd}, nil
	}
	return Restart{Safe: true}, nil
}
