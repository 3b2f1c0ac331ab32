package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/workload"
)

// rollOut plays the Deployment controller, for which every pod is there at once.
func (c *cluster) rollOut() {
	c.Helper()
	if err := c.tryRollOut(c.Context()); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) tryRollOut(ctx context.Context) error {
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		d := &appsv1.Deployment{}
		if err := c.admin.Get(ctx, client.ObjectKey{Namespace: console.Namespace, Name: name}, d); client.IgnoreNotFound(err) != nil {
			return err
		} else if err != nil || workload.RolledOut(d) {
			continue
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if err := ignoreRace(c.admin.Status().Update(ctx, d, client.FieldOwner("kube-controller-manager"))); err != nil {
			return err
		}
	}
	return nil
}
