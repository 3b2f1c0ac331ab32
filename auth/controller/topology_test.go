package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// shaped fails unless the Deployment has the shape of the topology, numbers and all, against the API server's own defaults.
func (c *cluster) shaped(k client.ObjectKey, replicas int32, unavailable, surge string, apart bool) {
	c.Helper()
	d := c.deployment(k)
	pod := d.Spec.Template.Spec
	if n := *d.Spec.Replicas; n != replicas {
		c.Errorf("%s has %d replicas, want %d", k.Name, n, replicas)
	}
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || d.Spec.Strategy.RollingUpdate.MaxUnavailable.String() != unavailable ||
		d.Spec.Strategy.RollingUpdate.MaxSurge.String() != surge {
		c.Errorf("%s rolls by %+v, want %s unavailable and %s more", k.Name, d.Spec.Strategy, unavailable, surge)
	}
	if got := pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil && len(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0; got != apart {
		c.Errorf("%s has anti-affinity: %t, want %t", k.Name, got, apart)
	}
	if _, pinned := pod.NodeSelector["node-role.kubernetes.io/master"]; !pinned || len(pod.Tolerations) != 2 {
		c.Errorf("%s is not pinned: %v, %v", k.Name, pod.NodeSelector, pod.Tolerations)
	}
}

// ownsNothing fails if anything of ours is left on the objects, conditions apart.
func (c *cluster) ownsNothing() {
	c.Helper()
	for _, o := range []client.Object{c.authentication(), c.deployment(serverKey), c.deployment(apiServerKey)} {
		own, err := ownership.Applied(o, auth.FieldOwner, "")
		if err != nil || !own.Empty() {
			c.Errorf("%s: still owned: %s, %v", o.GetName(), own, err)
		}
	}
}

// The main job, in both directions at run time, and nothing is written once it is done.
func TestFollowsTheTopology(t *testing.T) {
	c := install(t, sr, needs, 1)
	l := c.looker()

	single := func() {
		t.Helper()
		l.want(l.settle(), patch.InForce, "AsExpected")
		c.wantOverrides(`{"` + key + `":true}`)
		c.shaped(serverKey, 1, "0", "1", false)
		c.shaped(apiServerKey, 1, "1", "0", true)
		l.atRest()
	}
	l.want(l.look(), patch.Progressing, "RollingOut")
	single()
	if got := len(c.server.WritesDuring(t, ourUser, func() { c.looker().look() })); got != 0 {
		t.Errorf("after a restart %d write requests", got)
	}

	c.flip(ha)
	c.installNodes(3)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.wantOverrides("absent")
	c.shaped(serverKey, 3, "2", "3", true)
	c.shaped(apiServerKey, 3, "1", "0", true)
	l.atRest()

	c.flip(sr)
	single()

	c.flip(external)
	l.want(l.settle(), patch.NotNeeded, "NotNeeded")
	c.wantOverrides("absent")
	c.ownsNothing()
	l.atRest()
}
