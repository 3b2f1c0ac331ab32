package console_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
)

// world is the state of a cluster while downloads is taken over. Between two writes the module may crash, and the
// cluster-version-operator acts on the ClusterVersion that it last observed.
type world struct {
	// mode is the control-plane topology of a cluster whose infrastructure topology is SingleReplica, "-" for unknown.
	mode configv1.TopologyMode
	// version and downloads are keys of versions and deployed, or retaken: shaped, then partly reverted by the
	// cluster-version-operator. Without a ClusterVersion there is no cluster-version-operator.
	version, downloads string
	// observed is that status.observedGeneration is current; handsOff is that the cluster-version-operator writes nothing.
	observed, handsOff bool
	optOut             bool
}

const (
	noVersion, noEntry, ourEntry, theirEntry, contrary = "none", "no entry", "ours", "theirs", "contrary"

	missing, release, taken, retaken, byPerson, byOperator, plain = "missing", "release", "taken", "retaken", "scaled", "stock two", "plain"
)

func (w world) inputs() console.Inputs {
	in := console.Inputs{Console: stockShape("console")}
	if w.mode != "-" {
		topologies(w.mode, sr)(&in)
	}
	if in.ClusterVersion = versions[w.version].DeepCopy(); in.ClusterVersion != nil && !w.observed {
		in.ClusterVersion.Generation++
	}
	in.Downloads = deployed[w.downloads].DeepCopy()
	switch {
	case w.downloads == retaken:
		in.Downloads = shaped("downloads", scaled, ownedBy(cvo, replicasJSON), ownedBy(us, `{"f:spec":{"f:template":{"f:spec":{"f:tolerations":{}}}}}`))
	case w.downloads == taken && w.version == noVersion:
		in.Downloads.ManagedFields = []metav1.ManagedFieldsEntry{entry("installer", containersJSON), entry(us, shapeJSON)}
	}
	if in.Downloads != nil && w.optOut {
		optedOut("console")(in.Downloads)
	}
	return in
}

// next returns the world after the write that the module decides on, by its name, and fails the test for an unsafe one.
func (w world) next(t *testing.T) map[string]world {
	t.Helper()
	decision := console.Decide(w.inputs())
	override, shape := decision.ClusterVersion, decision.Downloads
	operated, owned := w.version != noVersion, w.downloads == taken || w.downloads == retaken
	out := map[string]world{}
	for name, write := range map[string]struct {
		wanted, unsafe bool
		change         func(*world)
	}{
		"apply the override": {
			override.Intent != nil && w.version != ourEntry, w.version != noEntry || w.downloads == missing,
			func(w *world) { w.version, w.observed = ourEntry, false },
		},
		"release the override": {
			override.Release && w.version == ourEntry, owned,
			func(w *world) { w.version, w.observed = noEntry, false },
		},
		"apply the shape": {
			shape.Intent != nil && w.downloads != taken,
			w.downloads == missing || w.downloads == byPerson || w.downloads == byOperator || operated && !w.handsOff && w.downloads != plain,
			func(w *world) { w.downloads = taken },
		},
		"release the shape": {
			shape.Release && owned, !w.handsOff && w.version == ourEntry,
			func(w *world) { w.downloads = map[bool]string{true: release, false: plain}[operated] },
		},
	} {
		if !write.wanted {
			continue
		}
		if write.unsafe {
			t.Errorf("%+v: must not %s", w, name)
		}
		after := w
		write.change(&after)
		out[name] = after
	}
	if override.Intent != nil && override.Release || shape.Intent != nil && shape.Release || len(out) > 1 {
		t.Errorf("%+v: several writes in one decision, in no defined order: %+v", w, decision)
	}
	return out
}

// operator returns the world after the cluster-version-operator has observed the ClusterVersion, and after it has written downloads.
func (w world) operator() (observed, wrote world) {
	observed, wrote = w, w
	if w.version == noVersion {
		return w, w
	}
	observed.observed, observed.handsOff = true, w.version == ourEntry || w.version == theirEntry
	if !w.handsOff {
		switch w.downloads {
		case missing, release, byPerson:
			wrote.downloads = release
		case taken, retaken:
			wrote.downloads = retaken
		}
	}
	return observed, wrote
}

func worlds() []world {
	var all []world
	for _, mode := range append(allModes[:len(allModes):len(allModes)], "-") {
		for _, downloads := range []string{missing, release, taken, retaken, byPerson, byOperator, plain} {
			for _, optOut := range []bool{false, true} {
				if downloads == missing && optOut {
					continue
				}
				all = append(all, world{mode: mode, version: noVersion, downloads: downloads, optOut: optOut})
				for _, version := range []string{noEntry, ourEntry, theirEntry, contrary} {
					w := world{mode: mode, version: version, downloads: downloads, optOut: optOut}
					observed, _ := w.operator()
					hasty := w
					hasty.handsOff = true
					all = append(all, w, hasty, observed)
				}
			}
		}
	}
	return all
}

// TestWalk shows R-CON-2: from every state, with a crash and any act of the cluster-version-operator after every write,
// downloads is never lost, and the two never write it at the same time.
func TestWalk(t *testing.T) {
	seen := map[world]bool{}
	writes := 0
	for queue := worlds(); len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if seen[w] {
			continue
		}
		seen[w] = true
		for name, after := range w.next(t) {
			writes++
			if w.downloads != missing && after.downloads == missing {
				t.Errorf("%+v: %s loses downloads", w, name)
			}
			queue = append(queue, after)
		}
		observed, wrote := w.operator()
		queue = append(queue, observed, wrote)
	}
	if writes < 100 {
		t.Errorf("only %d writes over %d states", writes, len(seen))
	}
}

// settle lets the module and the cluster-version-operator act in turn, and returns the writes of the module.
func (w world) settle(t *testing.T) (end world, writes []string) {
	t.Helper()
	start := w
	for range 12 {
		moved := w
		for name, after := range w.next(t) {
			moved, writes = after, append(writes, name)
		}
		moved, _ = moved.operator()
		if _, moved = moved.operator(); moved == w {
			return w, writes
		}
		w = moved
	}
	t.Fatalf("%+v never settles: %v", start, writes)
	return w, writes
}

// From every state, the cluster settles in what the topology and people want.
func TestWalkConverges(t *testing.T) {
	for _, start := range worlds() {
		w, writes := start.settle(t)
		if problem := w.problem(); problem != "" {
			t.Errorf("%+v settled as %+v after %v: %s", start, w, writes, problem)
		}
	}
}

// problem returns what is wrong with a settled world.
func (w world) problem() string {
	switch {
	case w.mode == "-" && w.downloads != missing:
		return "" // nothing may change
	case w.downloads == missing && (w.version == noVersion || w.version == theirEntry):
		return "" // nobody creates it, through no fault of the module
	case w.downloads == missing:
		return "downloads is lost"
	case w.version == noVersion && (w.downloads == release || w.downloads == retaken):
		return "" // the ClusterVersion was deleted
	case w.downloads == byOperator && w.version == ourEntry:
		return "an override that is not needed blocks upgrades"
	case w.downloads == byOperator, w.downloads == byPerson:
		return ""
	}
	single := w.mode == sr || w.mode == external
	switch {
	case single && !w.optOut && w.downloads != taken && w.version != contrary:
		return "not taken over"
	case single && !w.optOut:
		return ""
	case w.version == ourEntry:
		return "the override was not released"
	case w.downloads == taken, w.downloads == retaken:
		return "the shape was not released"
	}
	return ""
}

// The writes on an ordinary cluster whose topology changes to HighlyAvailable and back.
func TestWalkInAndOut(t *testing.T) {
	w := world{mode: sr, version: noEntry, observed: true, downloads: release}
	takeOver, giveBack := "[apply the override apply the shape]", "[release the shape release the override]"
	for mode, want := range []string{takeOver, giveBack, takeOver} {
		var writes []string
		w.mode = []configv1.TopologyMode{sr, ha, sr}[mode]
		if w, writes = w.settle(t); fmt.Sprint(writes) != want {
			t.Errorf("%s: %v, want %s", w.mode, writes, want)
		}
	}
}
