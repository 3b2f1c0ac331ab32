package controller

import (
	"slices"
	"testing"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// A single look, after which nothing goes on, answers no node, in whatever it asks for.
func TestOnceAnswersNobody(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	l := c.looker()
	l.patcher.once = true
	l.says(l.once(), patch.InForce, "AsExpected")
	for _, request := range []string{"drain-a", "uncordon-a"} {
		c.ask("w0", request)
		c.server.NoWrites(t, us, func() { l.says(l.once(), patch.Waiting, machineconfig.ReasonDraining) })
	}
	c.ask("w0", "nonsense")
	c.server.NoWrites(t, us, func() { l.says(l.once(), patch.Failed, "Invalid") })
}

// What a controller does when it has been wanted for a while, a single look does at once.
func TestOnceSettlesAtOnce(t *testing.T) {
	c := single(t)
	l := c.looker()
	l.patcher.once = true
	l.once()
	if got := c.shutdownObjects(); !slices.Equal(got, []string{"MachineConfig", "KubeletConfig"}) {
		t.Errorf("%v are there", got)
	}
	l.says(l.once(), patch.InForce, "AsExpected")
}
