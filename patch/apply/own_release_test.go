package apply_test

import (
	"testing"

	"github.com/solonode/sno/patch/apply"
)

// A cache that has not seen our own release yet shows the patch as it was. That must not count as applied again, or the release,
// once it is seen, looks like a revert.
func TestOwnReleaseIsNoRevert(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	old := b.live()
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.applyTo(a, old, pinned(1), apply.Unchanged, 0)
	b.apply(a, pinned(1), apply.Applied, 1)
}
