package controller

import (
	"math/rand/v2"
	"net/http"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/patch/patchtest"
)

// someWorld is a cluster of any topology. Every other time something is wrong with etcd.
func someWorld(random *rand.Rand) world {
	w := world{mode: []configv1.TopologyMode{sr, dual, arbiter, ha, ha}[random.IntN(5)]}
	w.nodes = map[configv1.TopologyMode][]int{sr: {1, 1, 1}, dual: {2, 2, 2}, arbiter: {3, 3, 3}, ha: {3, 4, 5}}[w.mode][random.IntN(3)]
	w.members, w.healthy = w.nodes, w.nodes
	if random.IntN(2) == 0 {
		w.members += random.IntN(3)
		w.healthy = random.IntN(w.members + 1)
		if random.IntN(3) == 0 {
			w.healthy = -1
		}
	}
	return w
}

func (w world) healthyEtcd() world {
	w.members, w.healthy = w.nodes, w.nodes
	return w
}

// TestCrashAnywhere shows R-ETC-3. Cut off at any request, hundreds of times, with the cluster-version-operator at work
// at any moment and requests that arrive when their process is long dead: the guard is never missing or too loose, two
// never write it, and in the end it is right.
func TestCrashAnywhere(t *testing.T) {
	const randomSeed = 1
	kills := 240
	if testing.Short() {
		kills = 40
	}
	random := rand.New(rand.NewPCG(randomSeed, 0))
	c := install(t, ha, 3)
	operator := c.versionOperator()
	h := c.history()
	// The history begins with what is there.
	h.now(world{mode: ha, nodes: 3, members: 3, healthy: 3})
	c.must(c.admin.Delete(t.Context(), deploymentObject.Unstructured()))
	c.must(c.admin.Delete(t.Context(), budgetObject.Unstructured()))
	c.must(c.admin.Delete(t.Context(), versionObject.Unstructured()))
	c.installVersion()
	operator.act()

	killed, rests, hung := 0, 0, 0
	for step := 0; killed < kills; step++ {
		w := someWorld(random)
		h.become(w)
		for atRest := false; !atRest; {
			l := c.looker()
			// It dies at any request of its first round, or at one of its first writes.
			death := patchtest.Death(random.IntN(int(patchtest.Deaths)))
			if random.IntN(5) < 3 {
				l.fuse.BlowAtWrite(1+random.IntN(2), death)
			} else {
				l.fuse.Blow(1+random.IntN(14), death)
			}
			l.fuse.Before(func(r *http.Request) {
				if r.Method != http.MethodGet && random.IntN(4) == 0 {
					operator.act()
				}
			})
			result, _ := l.try() // it dies, it waits for the cluster-version-operator, or it has nothing to do
			if l.fuse.Blown() {
				killed++
			} else {
				atRest = result.Reason != "TakingOver"
				operator.act()
			}
			if l.fuse.Late() > 0 && random.IntN(2) == 0 {
				l.fuse.Deliver()
				hung++
			}
		}
		if step%6 != 5 {
			continue
		}
		l := c.looker()
		l.fuse.Deliver()
		w = w.healthyEtcd()
		h.become(w)
		result := l.settle()
		if err := h.rest(w); err != nil {
			t.Fatalf("step %d, %+v, %v: %v", step, w, result, err)
		}
		l.atRest()
		rests++
	}
	ours := h.check()
	t.Logf("random seed %d: %d kills, %d late requests, %d times at rest, %d writes to the guard", randomSeed, killed, hung, rests, ours)
	if ours < kills/4 || rests == 0 || hung == 0 {
		t.Error("too little happened for this to show anything")
	}
}
