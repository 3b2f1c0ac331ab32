// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/patch"
)

// APIOutage stops the API server's static pod: a single-node cluster has to tolerate two minutes without it (R-OPS-4).
var APIOutage = kindtarget.Experiment{
	Name: "api-outage", SecondCluster: true, Description: "no controller restarts and no lease is lost while the API server is unavailable for one and for two minutes", Run: outage,
}

// convergence limits the time after the API server answers again. Back-offs have grown to minutes by then.
const convergence = 3 * time.Minute

var errNotSurvived = errors.New("the outage was not survived")

func outage(ctx context.Context, e *kindtarget.Env) error {
	var rows []bench.Row
	// A controller whose pod was replaced may not lead yet.
	if err := waitForLeaders(ctx, e); err != nil {
		return err
	}
	for _, length := range []time.Duration{time.Minute, 2 * time.Minute} {
		before, err := readControllers(ctx, e)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := e.Outage(ctx, length); err != nil {
			return err
		}
		answers := time.Now()
		if err := e.WaitSettled(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNotSurvived, err)
		}
		took := time.Since(answers)
		// A Lease may be lost a little later. Without this wait the next outage would add to the last one.
		if err := renewed(ctx, e, begun.Add(length)); err != nil {
			return fmt.Errorf("%w: %w", errNotSurvived, err)
		}
		after, err := readControllers(ctx, e)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, after); diff != "" {
			return fmt.Errorf("%w: unavailable for %s, before (-) and after (+):\n%s", errNotSurvived, length, diff)
		}
		rows = append(rows, bench.Row{
			What:     fmt.Sprintf("API server's static pod stopped for %s, all controllers", length),
			Measured: fmt.Sprintf("0 of %d pods restarted, 0 of %d leases lost, settled %s after it answered", len(before.Pods), len(before.Leases), seconds(took)),
			Bound:    "none, none, " + seconds(convergence), Compared: "-", Held: took <= convergence,
		})
		if took > convergence {
			return fmt.Errorf("%w: settled %s after the API server answered, bound %s", errNotSurvived, took, convergence)
		}
	}
	return record(e, "api-outage", rows)
}

// takeover is for the Lease of a single node that another pod has released, which is tried every 60 to 132 s.
const takeover = 3 * time.Minute

func waitForLeaders(ctx context.Context, e *kindtarget.Env) error {
	return until(ctx, "every controller leads", takeover, func(ctx context.Context) error {
		for _, module := range framework.AllModules() {
			lease := &coordinationv1.Lease{}
			key := client.ObjectKey{Namespace: framework.SystemNamespace, Name: module.Controller().Name + "." + patch.Domain}
			if err := e.Cluster.Client().Get(ctx, key, lease); err != nil {
				return err //nolint:wrapcheck // until wraps it
			}
			if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
				return fmt.Errorf("%w: no holder of the Lease %s", errNotSurvived, lease.Name)
			}
		}
		return nil
	})
}

// renewal is for a Lease of a single node, which is renewed each minute.
const renewal = 2 * time.Minute

func renewed(ctx context.Context, e *kindtarget.Env, after time.Time) error {
	return until(ctx, "every Lease is renewed", renewal, func(ctx context.Context) error {
		leases := &coordinationv1.LeaseList{}
		if err := e.Cluster.Client().List(ctx, leases, client.InNamespace(framework.SystemNamespace)); err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		return stale(leases.Items, after)
	})
}

func stale(leases []coordinationv1.Lease, after time.Time) error {
	var errs []error
	for i := range leases {
		at := ptr.Deref(leases[i].Spec.RenewTime, metav1.MicroTime{})
		if by := ptr.Deref(leases[i].Spec.HolderIdentity, ""); by != "" && !at.After(after) {
			errs = append(errs, fmt.Errorf("%w: %s was last renewed by %s at %s", errNotSurvived, leases[i].Name, by, at.Format(time.TimeOnly)))
		}
	}
	return errors.Join(errs...)
}

type controllers struct {
	// Pods are the restarts of each pod's containers, by UID.
	Pods map[string]int32
	// Leases are the holders, and how often they have changed.
	Leases map[string]holder
}

type holder struct {
	Identity    string
	Transitions int32
}

func readControllers(ctx context.Context, e *kindtarget.Env) (controllers, error) {
	now := controllers{Pods: map[string]int32{}, Leases: map[string]holder{}}
	pods, leases := &corev1.PodList{}, &coordinationv1.LeaseList{}
	for _, list := range []client.ObjectList{pods, leases} {
		if err := e.Cluster.Client().List(ctx, list, client.InNamespace(framework.SystemNamespace)); err != nil {
			return now, fmt.Errorf("read the controllers: %w", err)
		}
	}
	for i := range pods.Items {
		restarts := int32(0)
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			restarts += status.RestartCount
		}
		now.Pods[pods.Items[i].Name+" "+string(pods.Items[i].UID)] = restarts
	}
	for i := range leases.Items {
		spec := leases.Items[i].Spec
		now.Leases[leases.Items[i].Name] = holder{ptr.Deref(spec.HolderIdentity, ""), ptr.Deref(spec.LeaseTransitions, 0)}
	}
	if len(now.Pods) < len(framework.AllModules()) || len(now.Leases) < len(framework.AllModules()) {
		return now, fmt.Errorf("%w: only %d pods and %d leases of %d controllers exist", errNotSurvived, len(now.Pods), len(now.Leases), len(framework.AllModules()))
	}
	return now, nil
}
