// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/console/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

// clusterState is a state during a takeover or release of downloads. The cluster-version-operator acts on the
// ClusterVersion that it last observed. Without a ClusterVersion there is no such operator.
type clusterState struct {
	mode configv1.TopologyMode // of the control plane, "-" for unknown; the infrastructure is SingleReplica
	// version and downloads are keys of versions and deployed, or reverted: shaped, then partly reverted by the
	// cluster-version-operator.
	version, downloads string
	// observed: status.observedGeneration is current. unmanaged: the cluster-version-operator writes nothing.
	observed, unmanaged bool
	optOut              bool
}

const (
	noVersion, noEntry, ourEntry, theirEntry, conflicting = "none", "no entry", "ours", "theirs", "conflicting"

	missing, release, taken, reverted, byPerson, byOperator, plain = "missing", "release", "taken", "reverted", "scaled", "stock two", "plain"
)

func (s clusterState) inputs() decision.Inputs {
	in := decision.Inputs{Console: stockShape("console")}
	if s.mode != "-" {
		topologies(s.mode, topologytest.SR)(&in)
	}
	if in.ClusterVersion = versions[s.version].DeepCopy(); in.ClusterVersion != nil && !s.observed {
		in.ClusterVersion.Generation++
	}
	in.Downloads = deployed[s.downloads].DeepCopy()
	switch {
	case s.downloads == reverted:
		in.Downloads = fixture.Shaped("downloads", scaled, ownedBy(cvo, replicasJSON), ownedBy(own, `{"f:spec":{"f:template":{"f:spec":{"f:tolerations":{}}}}}`))
	case s.downloads == taken && s.version == noVersion:
		in.Downloads.ManagedFields = []metav1.ManagedFieldsEntry{entry("installer", containersJSON), entry(own, shapeJSON)}
	}
	if in.Downloads != nil && s.optOut {
		optedOut("console")(in.Downloads)
	}
	return in
}

// next returns the state after the write that the module decides on, by its name. An unsafe write fails the test.
func (s clusterState) next(t *testing.T) map[string]clusterState {
	t.Helper()
	decided := decision.Decide(s.inputs())
	override, shape := decided.ClusterVersion, decided.Downloads
	operated, owned := s.version != noVersion, s.downloads == taken || s.downloads == reverted
	out := map[string]clusterState{}
	for name, write := range map[string]struct {
		wanted, unsafe bool
		change         func(*clusterState)
	}{
		"apply the override": {
			override.Intent != nil && s.version != ourEntry, s.version != noEntry || s.downloads == missing,
			func(s *clusterState) { s.version, s.observed = ourEntry, false },
		},
		"release the override": {
			override.Release && s.version == ourEntry, owned,
			func(s *clusterState) { s.version, s.observed = noEntry, false },
		},
		"apply the shape": {
			shape.Intent != nil && s.downloads != taken,
			s.downloads == missing || s.downloads == byPerson || s.downloads == byOperator || operated && !s.unmanaged && s.downloads != plain,
			func(s *clusterState) { s.downloads = taken },
		},
		"release the shape": {
			shape.Release && owned, !s.unmanaged && s.version == ourEntry,
			func(s *clusterState) { s.downloads = map[bool]string{true: release, false: plain}[operated] },
		},
	} {
		if !write.wanted {
			continue
		}
		if write.unsafe {
			t.Errorf("%+v: must not %s", s, name)
		}
		after := s
		write.change(&after)
		out[name] = after
	}
	if override.Intent != nil && override.Release || shape.Intent != nil && shape.Release || len(out) > 1 {
		t.Errorf("%+v: several writes in one decision, in no defined order: %+v", s, decided)
	}
	return out
}

// operator returns the states after the cluster-version-operator has observed the ClusterVersion or written downloads.
func (s clusterState) operator() (observed, wrote clusterState) {
	observed, wrote = s, s
	if s.version == noVersion {
		return s, s
	}
	observed.observed, observed.unmanaged = true, s.version == ourEntry || s.version == theirEntry
	if !s.unmanaged {
		switch s.downloads {
		case missing, release, byPerson:
			wrote.downloads = release
		case taken, reverted:
			wrote.downloads = reverted
		}
	}
	return observed, wrote
}

func clusterStates() []clusterState {
	var all []clusterState
	for _, mode := range append(topologytest.AllModes[:len(topologytest.AllModes):len(topologytest.AllModes)], "-") {
		for _, downloads := range []string{missing, release, taken, reverted, byPerson, byOperator, plain} {
			for _, optOut := range []bool{false, true} {
				if downloads == missing && optOut {
					continue
				}
				all = append(all, clusterState{mode: mode, version: noVersion, downloads: downloads, optOut: optOut})
				for _, version := range []string{noEntry, ourEntry, theirEntry, conflicting} {
					s := clusterState{mode: mode, version: version, downloads: downloads, optOut: optOut}
					observed, _ := s.operator()
					early := s
					early.unmanaged = true
					all = append(all, s, early, observed)
				}
			}
		}
	}
	return all
}

// R-CON-2: from every state, with a crash or a write of the cluster-version-operator after each write, downloads is
// never lost, and the two never write it at the same time.
func TestTakeoverStates(t *testing.T) {
	seen := map[clusterState]bool{}
	writes := 0
	for queue := clusterStates(); len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if seen[s] {
			continue
		}
		seen[s] = true
		for name, after := range s.next(t) {
			writes++
			if s.downloads != missing && after.downloads == missing {
				t.Errorf("%+v: %s loses downloads", s, name)
			}
			queue = append(queue, after)
		}
		observed, wrote := s.operator()
		queue = append(queue, observed, wrote)
	}
	if writes < 100 {
		t.Errorf("only %d writes over %d states", writes, len(seen))
	}
}

// settle runs the module and the cluster-version-operator in turn, and returns the writes of the module.
func (s clusterState) settle(t *testing.T) (end clusterState, writes []string) {
	t.Helper()
	start := s
	for range 12 {
		moved := s
		for name, after := range s.next(t) {
			moved, writes = after, append(writes, name)
		}
		moved, _ = moved.operator()
		if _, moved = moved.operator(); moved == s {
			return s, writes
		}
		s = moved
	}
	t.Fatalf("%+v never settles: %v", start, writes)
	return s, writes
}

func TestTakeoverConverges(t *testing.T) {
	for _, start := range clusterStates() {
		s, writes := start.settle(t)
		if problem := s.problem(); problem != "" {
			t.Errorf("%+v settles as %+v after %v: %s", start, s, writes, problem)
		}
	}
}

func (s clusterState) problem() string {
	switch {
	case s.mode == "-" && s.downloads != missing:
		return "" // nothing may change
	case s.downloads == missing && (s.version == noVersion || s.version == theirEntry):
		return "" // no client creates it
	case s.downloads == missing:
		return "downloads is lost"
	case s.version == noVersion && (s.downloads == release || s.downloads == reverted):
		return "" // the ClusterVersion was deleted
	case s.downloads == byOperator && s.version == ourEntry:
		return "an override that is not needed blocks upgrades"
	case s.downloads == byOperator, s.downloads == byPerson:
		return ""
	}
	single := s.mode == topologytest.SR || s.mode == topologytest.External
	switch {
	case single && !s.optOut && s.downloads != taken && s.version != conflicting:
		return "not taken over"
	case single && !s.optOut:
		return ""
	case s.version == ourEntry:
		return "the override was not released"
	case s.downloads == taken, s.downloads == reverted:
		return "the shape was not released"
	}
	return ""
}

func TestTakeoverAndRelease(t *testing.T) {
	s := clusterState{mode: topologytest.SR, version: noEntry, observed: true, downloads: release}
	takingOver, releasing := "[apply the override apply the shape]", "[release the shape release the override]"
	for mode, want := range []string{takingOver, releasing, takingOver} {
		var writes []string
		s.mode = []configv1.TopologyMode{topologytest.SR, topologytest.HA, topologytest.SR}[mode]
		if s, writes = s.settle(t); fmt.Sprint(writes) != want {
			t.Errorf("%s: %v, want %s", s.mode, writes, want)
		}
	}
}
