package console_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
)

// world is a cluster as far as the takeover of downloads is concerned. Between two steps of ours anything may happen: we may
// crash, and the cluster-version-operator acts by what it last saw of the ClusterVersion.
type world struct {
	// mode is the control-plane topology of a cluster whose infrastructure is SingleReplica, "-" while it is unknown.
	mode configv1.TopologyMode
	// version tells whether there is a ClusterVersion, and with it a cluster-version-operator.
	version bool
	// entry is ours, theirs (somebody else's with unmanaged: true), contrary (theirs with false) or "".
	entry string
	// observed tells whether status.observedGeneration is up to date; handsOff is what the cluster-version-operator really does.
	observed, handsOff bool
	// downloads is missing, release (as the manifest has it), ours, mixed (ours, on top of the release's other fields, but with
	// fields of the release again), scaled (a person set replicas), operator (a console operator's), plain (nobody's).
	downloads string
	optOut    bool
}

const (
	missing, release, taken, retaken, byPerson, byOperator, plain = "missing", "release", "ours", "mixed", "scaled", "operator", "plain"
	ourEntry, theirEntry, contrary                                = "ours", "theirs", "contrary"
)

func (w world) inputs() console.Inputs {
	in := console.Inputs{Console: stockShape("console")}
	if w.mode != "-" {
		cluster := clusterOf(w.mode, sr) // an External control plane leaves one worker here
		in.Cluster = &cluster
	}
	if w.version {
		overrides := others()
		switch w.entry {
		case ourEntry, theirEntry:
			overrides = append(overrides, theEntry(true))
		case contrary:
			overrides = append(overrides, theEntry(false))
		}
		in.ClusterVersion = version(overrides...)
		switch w.entry {
		case ourEntry:
			signed(in.ClusterVersion, us, overrideJSON)
		case theirEntry, contrary:
			signed(in.ClusterVersion, person, overrideJSON)
		}
		if !w.observed {
			unobserved(in.ClusterVersion)
		}
	}
	switch w.downloads {
	case release:
		in.Downloads = manifest("downloads", ownedBy(cvo, manifestJSON))
	case taken:
		in.Downloads = shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(us, shapeJSON))
		if !w.version {
			in.Downloads.ManagedFields = []metav1.ManagedFieldsEntry{entry("installer", containersJSON), entry(us, shapeJSON)}
		}
	case retaken:
		in.Downloads = shaped("downloads", scaled, ownedBy(cvo, replicasJSON), ownedBy(us, `{"f:spec":{"f:template":{"f:spec":{"f:tolerations":{}}}}}`))
	case byPerson:
		in.Downloads = manifest("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(person, replicasJSON))
	case byOperator:
		in.Downloads = manifest("downloads", ownedBy(cvo, containersJSON), ownedBy(stock, manifestJSON))
	case plain:
		in.Downloads = manifest("downloads", ownedBy("installer", containersJSON))
	}
	if in.Downloads != nil && w.optOut {
		optedOut("console")(in.Downloads)
	}
	return in
}

// next are the worlds after one more write of ours: the steps of one decision may be carried out in any order, and a crash may
// come before any of them.
func (w world) next(t *testing.T) map[string]world {
	t.Helper()
	out := map[string]world{}
	decision := console.Decide(w.inputs())
	live := w.inputs().Downloads
	ours := w.downloads == taken || w.downloads == retaken
	writes := 0
	if decision.ClusterVersion.Intent != nil && decision.ClusterVersion.Release {
		t.Errorf("%+v: applies and releases the override at once", w)
	}
	if decision.Downloads.Intent != nil && decision.Downloads.Release {
		t.Errorf("%+v: applies and releases the shape at once", w)
	}

	if decision.ClusterVersion.Intent != nil && w.entry != ourEntry {
		if w.entry != "" {
			t.Errorf("%+v: writes over somebody's override", w)
		}
		if live == nil {
			t.Errorf("%+v: keeps the cluster-version-operator from making downloads", w)
		}
		after := w
		after.entry, after.observed = ourEntry, false
		out["apply the override"] = after
		writes++
	}
	if decision.ClusterVersion.Release && w.entry == ourEntry {
		if ours {
			t.Errorf("%+v: gives the override back before the shape", w)
		}
		after := w
		after.entry, after.observed = "", false
		out["release the override"] = after
		writes++
	}
	if decision.Downloads.Intent != nil && w.downloads != taken {
		switch {
		case live == nil:
			t.Errorf("%+v: makes downloads", w)
		case w.version && !w.handsOff && w.downloads != plain:
			t.Errorf("%+v: writes downloads beside the cluster-version-operator", w)
		case w.downloads == byPerson || w.downloads == byOperator:
			t.Errorf("%+v: writes over a field of somebody else", w)
		}
		after := w
		after.downloads = taken
		out["apply the shape"] = after
		writes++
	}
	if decision.Downloads.Release && ours {
		if w.version && !w.handsOff && w.entry == ourEntry {
			t.Errorf("%+v: gives back while the cluster-version-operator does not know yet", w)
		}
		after := w
		after.downloads = release
		if !w.version {
			after.downloads = plain
		}
		out["release the shape"] = after
		writes++
	}
	if writes > 1 {
		t.Errorf("%+v: %d writes in one decision, of which nobody knows the order", w, writes)
	}
	return out
}

// theirs are the worlds after the cluster-version-operator did something: it sees the ClusterVersion, and unless that keeps it
// away it writes downloads, and makes it where it is missing.
func (w world) theirs() map[string]world {
	out := map[string]world{}
	if !w.version {
		return out
	}
	seen := w
	seen.observed, seen.handsOff = true, w.entry == ourEntry || w.entry == theirEntry
	if seen != w {
		out["the cluster-version-operator sees the ClusterVersion"] = seen
	}
	brings := w.downloads == missing || w.downloads == release || w.downloads == taken || w.downloads == retaken || w.downloads == byPerson
	if !w.handsOff && brings {
		wrote := w
		wrote.downloads = release
		if w.downloads == taken || w.downloads == retaken {
			wrote.downloads = retaken
		}
		if wrote != w {
			out["the cluster-version-operator writes downloads"] = wrote
		}
	}
	return out
}

func worlds() []world {
	var all []world
	for _, mode := range append(allModes[:len(allModes):len(allModes)], "-") {
		for _, downloads := range []string{missing, release, taken, retaken, byPerson, byOperator, plain} {
			for _, optOut := range []bool{false, true} {
				if downloads == missing && optOut {
					continue
				}
				all = append(all, world{mode: mode, downloads: downloads, optOut: optOut})
				for _, entry := range []string{"", ourEntry, theirEntry, contrary} {
					unmanaged := entry == ourEntry || entry == theirEntry
					all = append(all,
						world{mode: mode, version: true, downloads: downloads, optOut: optOut, entry: entry, observed: true, handsOff: unmanaged},
						world{mode: mode, version: true, downloads: downloads, optOut: optOut, entry: entry, handsOff: true},
						world{mode: mode, version: true, downloads: downloads, optOut: optOut, entry: entry, handsOff: false})
				}
			}
		}
	}
	return all
}

// TestWalk shows R-CON-2. From every state, with a crash and whatever the cluster-version-operator does after every
// step: downloads never gets lost, and no two write it at a time.
func TestWalk(t *testing.T) {
	seen := map[world]bool{}
	queue := worlds()
	steps := 0
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if seen[w] {
			continue
		}
		seen[w] = true
		for name, after := range w.next(t) {
			steps++
			if w.downloads != missing && after.downloads == missing {
				t.Errorf("%+v: %s loses downloads", w, name)
			}
			queue = append(queue, after)
		}
		for _, after := range w.theirs() {
			queue = append(queue, after)
		}
	}
	if steps < 100 {
		t.Errorf("only %d steps over %d states: the walk does not walk", steps, len(seen))
	}
}

// From every state, when everybody goes on: it ends, at what the topology and the people want.
func TestWalkConverges(t *testing.T) {
	for _, start := range worlds() {
		w, path := start, ""
		for turn := 0; ; turn++ {
			moved := w
			for name, after := range w.next(t) {
				moved, path = after, path+"; "+name
			}
			for _, name := range []string{"the cluster-version-operator sees the ClusterVersion", "the cluster-version-operator writes downloads"} {
				if after, ok := moved.theirs()[name]; ok {
					moved, path = after, path+"; "+name
				}
			}
			if moved == w {
				break
			}
			if w = moved; turn > 12 {
				t.Fatalf("%+v never comes to rest%s", start, path)
			}
		}
		if problem := restless(w); problem != "" {
			t.Errorf("%+v ended at %+v%s: %s", start, w, path, problem)
		}
	}
}

// restless says what is wrong with a world in which nobody does anything anymore.
func restless(w world) string {
	reads := w.version && w.entry != contrary
	switch {
	case w.mode == "-" && w.downloads != missing:
		return "" // nothing is known, everything stays
	case w.downloads == missing && (!w.version || w.entry == theirEntry):
		return "" // nobody makes it, and that is not of our doing
	case w.downloads == missing:
		return "downloads is gone for good"
	case w.downloads == release && !w.version, w.downloads == retaken && !w.version:
		return "" // somebody deleted the ClusterVersion
	case w.downloads == byOperator && w.entry == ourEntry:
		return "an override that serves nothing blocks upgrades"
	case w.downloads == byOperator, w.downloads == byPerson:
		return ""
	}
	if single := w.mode == sr || w.mode == external; single && !w.optOut {
		if w.downloads != taken && (reads || !w.version) {
			return "not taken over"
		}
		return ""
	}
	switch {
	case w.entry == ourEntry:
		return "the override was not given back"
	case w.downloads == taken, w.downloads == retaken:
		return "the shape was not given back"
	}
	return ""
}

// The way in and out on a usual cluster, in words.
func TestWalkInAndOut(t *testing.T) {
	w := world{mode: sr, version: true, observed: true, downloads: release}
	var path []string
	turn := func() {
		for turns := 0; turns < 10; turns++ {
			for name, after := range w.next(t) {
				path, w = append(path, name), after
			}
			for _, after := range w.theirs() {
				w = after
			}
		}
	}
	turn()
	w.mode = ha
	turn()
	w.mode = sr
	turn()
	in, out := []string{"apply the override", "apply the shape"}, []string{"release the shape", "release the override"}
	if got, want := fmt.Sprint(path), fmt.Sprint(append(append(in, out...), in...)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
