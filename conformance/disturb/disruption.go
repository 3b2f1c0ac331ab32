// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// disrupt calls do and waits until all operands are available. It does not wait for those for which do returns a
// failure.
func (d *Disturber) disrupt(
	ctx context.Context, what string, do func(context.Context, []appsv1.Deployment) (map[string]string, error),
) (*catalogue.Disruption, error) {
	d.Target.Progressf("%s", what)
	state, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	all := state.Operands()
	watching, err := watchAvailability(ctx, d.Set, all, d.Target.Times.Poll)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	refused, err := do(ctx, all)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	var unread error
	_, err = cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if ctx.Err() == nil { // an API server on a disturbed node can fail again
			unread = err
		}
		switch {
		case errors.Is(err, catalogue.ErrForbidden):
			return false, err
		case err != nil:
			return false, nil
		}
		clear(wrong)
		for i := range all {
			name := catalogue.NameOf(&all[i])
			if why := state.Unsettled(all[i].Namespace, all[i].Name); why != "" && refused[name] == "" {
				wrong[name] = why
			}
		}
		return len(wrong) == 0, nil
	})
	if err := errors.Join(err, unread); err != nil {
		return nil, err
	}
	disruption := &catalogue.Disruption{}
	for i := range all {
		name := catalogue.NameOf(&all[i])
		disruption.Operands = append(disruption.Operands, catalogue.OperandDisruption{
			Name: name, Failure: cmp.Or(refused[name], wrong[name]), Downtime: watching.away(name),
		})
	}
	return disruption, nil
}

// waitAvailable waits for the Deployments that were available before all acts.
func (d *Disturber) waitAvailable(ctx context.Context) error {
	_, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		return err == nil && d.unavailable(state) == "", err
	})
	return err
}

// unavailable returns the first Deployment that was available before all acts and is not now.
func (d *Disturber) unavailable(state *catalogue.State) string {
	for i := range state.Deployments {
		now := &state.Deployments[i]
		was := d.Before.Deployment(now.Namespace, now.Name)
		if was != nil && was.Status.AvailableReplicas == catalogue.Replicas(was) && now.Status.AvailableReplicas < catalogue.Replicas(now) {
			return catalogue.NameOf(now) + ": " + state.Unsettled(now.Namespace, now.Name)
		}
	}
	return ""
}

type availability struct {
	stop func()

	mu          sync.Mutex
	deployments map[string]*downtime
}

type downtime struct {
	since time.Time // zero while a pod is available
	away  time.Duration
}

// watchAvailability begins a watch, which is repeated after an API server has ended it, at most once an interval.
func watchAvailability(ctx context.Context, kube kubernetes.Interface, all []appsv1.Deployment, interval time.Duration) (*availability, error) {
	a := &availability{deployments: map[string]*downtime{}}
	for i := range all {
		a.deployments[catalogue.NameOf(&all[i])] = &downtime{}
	}
	ctx, a.stop = context.WithCancel(ctx)
	begin := func() (watch.Interface, error) {
		return kube.AppsV1().Deployments(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	}
	watching, err := begin()
	if err != nil {
		a.stop()
		return nil, fmt.Errorf("watch Deployments: %w", err)
	}
	go func() {
		again := time.NewTicker(interval)
		defer again.Stop()
		for {
			a.follow(watching)
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			if next, err := begin(); err == nil { // the watch begins with the present Deployments
				watching = next
			}
		}
	}()
	return a, nil
}

func (a *availability) follow(watching watch.Interface) {
	for event := range watching.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok && event.Type != watch.Deleted {
			a.observe(d, time.Now())
		}
	}
}

func (a *availability) observe(d *appsv1.Deployment, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.deployments[catalogue.NameOf(d)]
	if l == nil {
		return
	}
	available := d.Status.AvailableReplicas
	switch {
	case available == 0 && l.since.IsZero():
		l.since = now
	case available > 0 && !l.since.IsZero():
		l.away += now.Sub(l.since)
		l.since = time.Time{}
	}
}

// away returns the seconds without an available pod. The name is that of reports.
func (a *availability) away(name string) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.deployments[name]
	away := l.away
	if !l.since.IsZero() {
		away += time.Since(l.since)
	}
	return away.Seconds()
}
