package etcdguard_test

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

const most = 9

// commits is raft's rule, over sets and not over numbers: more than half of the members are healthy.
func commits(members, healthy uint) bool {
	return 2*bits.OnesCount(members&healthy) > bits.OnesCount(members)
}

// listed are the members in the set, with IDs from 1.
func listed(members, healthy uint) []etcdguard.Member {
	var list []etcdguard.Member
	for i := range most {
		if members&(1<<i) != 0 {
			list = append(list, etcdguard.Member{ID: uint64(i + 1), Healthy: healthy&(1<<i) != 0})
		}
	}
	return list
}

// eachHealth calls f with 1 to 9 members in every combination of health.
func eachHealth(f func(n int, members, healthy uint)) {
	for n := 1; n <= most; n++ {
		members := uint(1)<<n - 1
		for healthy := uint(0); healthy <= members; healthy++ {
			f(n, members, healthy)
		}
	}
}

func TestTolerated(t *testing.T) {
	for n, want := range []int{0, 0, 0, 1, 1, 2, 2, 3, 3, 4} {
		if got := etcdguard.Tolerated(n); got != want {
			t.Errorf("%d members: %d, want %d", n, got, want)
		}
		if n > 0 && !commits(1<<n-1, 1<<(n-want)-1) {
			t.Errorf("%d members: without %d there is no quorum", n, want)
		}
		if n > 0 && commits(1<<n-1, 1<<(n-want-1)-1) {
			t.Errorf("%d members: one more than %d could go", n, want)
		}
		if n > 0 && etcdguard.Quorum(n) != n-want {
			t.Errorf("%d members: quorum %d, want %d", n, etcdguard.Quorum(n), n-want)
		}
	}
	if etcdguard.Tolerated(-1) != 0 || etcdguard.Quorum(0) < 1 {
		t.Error("nothing, or less, tolerates something")
	}
}

// As many may stop as Spare says, whichever they are, and never one more.
func TestSpare(t *testing.T) {
	eachHealth(func(n int, members, healthy uint) {
		spare := etcdguard.Spare(listed(members, healthy))
		want := 0
		for stopped := uint(0); stopped <= members; stopped++ {
			if stopped&^healthy == 0 && commits(members, healthy&^stopped) {
				want = max(want, bits.OnesCount(stopped))
			}
		}
		if spare != want {
			t.Errorf("%d members, healthy %b: %d, want %d", n, healthy, spare, want)
		}
		if spare > etcdguard.Tolerated(n) {
			t.Errorf("%d members, healthy %b: %d is more than if all were healthy", n, healthy, spare)
		}
	})
}

func TestSafeToRemove(t *testing.T) {
	for _, mode := range allModes {
		minimum := expected(mode)
		eachHealth(func(n int, members, healthy uint) {
			for i := range n {
				member := uint(1) << i
				left := bits.OnesCount(healthy &^ member)
				obstacle := ""
				switch {
				case !commits(members, healthy):
					obstacle = etcdguard.NoQuorum
				case !commits(members&^member, healthy&^member):
					obstacle = etcdguard.QuorumWouldBeLost
				case healthy&member != 0 && left < minimum:
					obstacle = etcdguard.BelowMinimum
				}
				got, err := etcdguard.SafeToRemove(no(etcdguard.MinimumMembers(clusterOf(mode), nil)), listed(members, healthy), uint64(i+1))
				if want := (etcdguard.Removal{Safe: obstacle == "", Obstacle: obstacle}); err != nil || got != want {
					t.Errorf("minimum %d, %d members, healthy %b, remove %d: %+v, %v; want %+v", minimum, n, healthy, i, got, err, want)
				}
			}
		})
	}
}

// A learner has no vote: it adds nothing to the quorum, and may go whenever the others can agree on it.
func TestLearner(t *testing.T) {
	learner := etcdguard.Member{ID: 99, Healthy: true, Learner: true}
	eachHealth(func(n int, members, healthy uint) {
		without := listed(members, healthy)
		with := append(without, learner)
		if etcdguard.Spare(with) != etcdguard.Spare(without) {
			t.Errorf("%d members, healthy %b: a learner changes what may stop", n, healthy)
		}
		minimum := no(etcdguard.MinimumMembers(clusterOf(ha), nil))
		for i := range n {
			got, _ := etcdguard.SafeToRemove(minimum, with, uint64(i+1))
			want, _ := etcdguard.SafeToRemove(minimum, without, uint64(i+1))
			if got != want {
				t.Errorf("%d members, healthy %b, remove %d: %+v beside a learner, %+v without", n, healthy, i, got, want)
			}
		}
		if got, err := etcdguard.SafeToRemove(minimum, with, 99); err != nil || got.Safe != commits(members, healthy) {
			t.Errorf("%d members, healthy %b, remove the learner: %+v, %v", n, healthy, got, err)
		}
	})
}

func TestSafeToRemoveErrors(t *testing.T) {
	fine := []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3, Healthy: true}}
	made := no(etcdguard.MinimumMembers(clusterOf(ha), nil))
	for name, test := range map[string]struct {
		minimum etcdguard.Minimum
		members []etcdguard.Member
		id      uint64
		want    error
		says    string
	}{
		"another member":             {made, fine, 7, etcdguard.ErrMember, "7 is not in the list"},
		"no members":                 {made, nil, 1, etcdguard.ErrMember, "1 is not in the list"},
		"the member is there twice":  {made, append(fine, etcdguard.Member{ID: 1}), 1, etcdguard.ErrMember, "1 is there twice"},
		"another one is there twice": {made, append(fine, etcdguard.Member{ID: 2, Healthy: true}), 1, etcdguard.ErrMember, "2 is there twice"},
		"a member without an ID":     {made, append(fine, etcdguard.Member{Healthy: true}), 0, etcdguard.ErrMember, "has no ID"},
		"nobody's minimum":           {etcdguard.Minimum{}, fine, 1, etcdguard.ErrMinimum, "MinimumMembers"},
		"half a minimum":             {etcdguard.Minimum{Members: 1}, fine, 1, etcdguard.ErrMinimum, "MinimumMembers"},
	} {
		got, err := etcdguard.SafeToRemove(test.minimum, test.members, test.id)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || got != (etcdguard.Removal{}) {
			t.Errorf("%s: %+v, %v; want %v saying %q", name, got, err, test.want, test.says)
		}
	}
}

// TestMinimumMembers shows R-ETC-1: the topology gives the minimum, without the override, and the override can only lower it.
func TestMinimumMembers(t *testing.T) {
	for mode, want := range map[configv1.TopologyMode]int{ha: 3, arbiter: 3, dual: 2, sr: 1, external: 0, empty: 3, unknown: 3} {
		for overrides, override := range map[string]etcdguard.Override{
			"":                      {},
			`{"` + key + `":false}`: {Present: true},
			key + ": 'true'\n":      {Present: true, Value: true},
		} {
			want := want
			if override.Value && mode != external {
				want = 1
			}
			if got, err := etcdguard.MinimumMembers(clusterOf(mode), []byte(overrides)); err != nil || got.Members != want || got.Override != override {
				t.Errorf("%q, %q: %+v, %v; want %d", mode, overrides, got, err, want)
			}
		}
		got, err := etcdguard.MinimumMembers(clusterOf(mode), []byte(`{"`+key+`":"maybe"}`))
		if !errors.Is(err, etcdguard.ErrOverride) || got != (etcdguard.Minimum{}) {
			t.Errorf("%q, an unreadable override: %+v, %v", mode, got, err)
		}
	}
}

// The whole way: the override lets a cluster of three go down to one, tells so, and never lets it lose its quorum.
func TestOverrideIsHonoured(t *testing.T) {
	for _, test := range []struct {
		overrides string
		healthy   uint
		safe      bool
	}{
		{"", 0b111, false},
		{`{"` + key + `":true}`, 0b111, true},
		{`{"` + key + `":"1"}`, 0b111, true},
		{key + ": yes\n", 0b111, true},
		{`{"` + key + `":"F"}`, 0b111, false},
		{`{"` + key + `":true}`, 0b011, false},
		{`{"` + key + `":true}`, 0b001, false},
	} {
		minimum, err := etcdguard.MinimumMembers(clusterOf(ha), []byte(test.overrides))
		if err != nil {
			t.Fatal(err)
		}
		got, err := etcdguard.SafeToRemove(minimum, listed(0b111, test.healthy), 1)
		if err != nil || got.Safe != test.safe {
			t.Errorf("%q, healthy %b: %+v, %v; want safe %t", test.overrides, test.healthy, got, err, test.safe)
		}
		if (got.Deprecation != "") != (test.overrides != "") {
			t.Errorf("%q: says %q about the override", test.overrides, got.Deprecation)
		}
	}
}

func ExampleSafeToRestart() {
	cluster := clusterWith(configv1.HighlyAvailableTopologyMode)
	members := []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3, Healthy: true}}
	fmt.Println(etcdguard.SafeToRestart(cluster, members, 1))
	members[2].Healthy = false
	fmt.Println(etcdguard.SafeToRestart(cluster, members, 1))
	fmt.Println(etcdguard.SafeToRestart(cluster, members, 3))

	single := clusterWith(configv1.SingleReplicaTopologyMode)
	fmt.Println(etcdguard.SafeToRestart(single, members[:1], 1))
	_, err := etcdguard.SafeToRestart(topology.Cluster{}, members, 1)
	fmt.Println(err)
	// Output:
	// {true } <nil>
	// {false Etcd would have no quorum while this member restarts; bring an unhealthy member back, or add one, first} <nil>
	// {true } <nil>
	// {true } <nil>
	// no topology: read the Cluster with topology.FromInfrastructure: mode ""
}

func ExampleSafeToRemove() {
	minimum, err := etcdguard.MinimumMembers(clusterWith(configv1.HighlyAvailableTopologyMode), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	members := []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3}}
	for _, m := range members {
		removal, err := etcdguard.SafeToRemove(minimum, members, m.ID)
		fmt.Println(m.ID, removal.Safe, removal.Obstacle, err)
	}
	// Output:
	// 1 false Without this member etcd would lose its quorum; bring an unhealthy member back, or remove that one first <nil>
	// 2 false Without this member etcd would lose its quorum; bring an unhealthy member back, or remove that one first <nil>
	// 3 true  <nil>
}
