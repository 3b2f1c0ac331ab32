// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/conformance/catalogue"
)

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
