// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/examples/hosts/olm-operator/apiserver"
)

const (
	// Agent is the name of the operator in the audit log, and owner that of its fields.
	Agent, owner = "olm-operator", "olm-operator"
	leaseName    = "olm-operator"
	// afterWrite is the least time between writes: another client may change the fields back again and again.
	afterWrite = time.Second
)

// errWaiting is the state before the first Infrastructure.
var errWaiting = errors.New("waiting for the Infrastructure object")

var retry = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 30 * time.Second}

// seen is what the API server has reported; nil before the first report.
type seen struct{ infrastructure, deployment, budget *apiserver.State }

type operator struct {
	client  *apiserver.Client
	options Options
	// changed has room for one: changes while the operator reconciles lead to one more reconciliation.
	changed chan struct{}

	mu   sync.Mutex
	seen seen
	// known is the last topology. It remains when the Infrastructure is deleted or cannot be read.
	known *answer
}

// Run runs the operator until the context ends, which is not an error.
func Run(ctx context.Context, client *apiserver.Client, options Options) error {
	o := &operator{client: client, options: options, changed: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer stop()
	known := make(chan struct{})
	ready := sync.OnceFunc(func() { close(known) })
	followers.Go(func() {
		client.Follow(ctx, infrastructure(), func(state apiserver.State) {
			if o.infrastructure(ctx, state) {
				ready()
			}
		})
	})
	for object, into := range map[apiserver.Object]**apiserver.State{o.deployment(): &o.seen.deployment, o.budget(): &o.seen.budget} {
		followers.Go(func() { client.Follow(ctx, object, func(state apiserver.State) { o.store(into, state) }) })
	}
	// The durations of the leader election depend on the topology.
	select {
	case <-ctx.Done():
		return nil
	case <-known:
	}
	if !options.LeaderElect {
		o.reconcileAlways(ctx)
		return nil
	}
	election := apiserver.Election{Client: client, Namespace: options.Namespace, Name: leaseName, Identity: options.Identity, Durations: o.durations}
	return election.Run(ctx, o.reconcileAlways)
}

func infrastructure() apiserver.Object {
	return apiserver.Object{Group: "config.openshift.io", Version: "v1", Resource: "infrastructures", Name: "cluster"}
}

func (o *operator) deployment() apiserver.Object {
	return apiserver.Object{Group: "apps", Version: "v1", Resource: "deployments", Namespace: o.options.Namespace, Name: o.options.Name}
}

func (o *operator) budget() apiserver.Object {
	return apiserver.Object{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Namespace: o.options.Namespace, Name: o.options.Name}
}

// infrastructure stores a topology, and reports whether one is known.
func (o *operator) infrastructure(ctx context.Context, state apiserver.State) bool {
	log := klog.FromContext(ctx)
	found, err := readTopology(state)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen.infrastructure = &state
	switch {
	case err != nil:
		log.Error(err, "Keeping the last topology")
	case found == nil && o.known == nil:
		log.Info("Waiting for the Infrastructure object")
	case found == nil, found.notOpenShift && o.known != nil && !o.known.notOpenShift:
		log.Info("The Infrastructure object is gone, keeping the last topology", "topology", o.known.String())
	case o.known == nil || *o.known != *found:
		log.Info("Following the topology", "topology", found.String())
		o.known = found
		o.wake()
	}
	return o.known != nil
}

func (o *operator) store(into **apiserver.State, state apiserver.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*into = &state
	o.wake()
}

func (o *operator) wake() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *operator) durations() apiserver.Durations {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known.durations()
}

// reconcileAlways reconciles after every change until the context ends.
func (o *operator) reconcileAlways(ctx context.Context) {
	o.wake()
	failures := retry
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		}
		wrote, err := o.reconcile(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.FromContext(ctx).Error(err, "Reconciling failed, retrying")
			apiserver.Wait(ctx, failures.Step())
			o.wake()
		case wrote:
			apiserver.Wait(ctx, afterWrite)
			fallthrough
		default:
			failures = retry
		}
	}
}

// reconcile writes what differs, and reports whether it wrote. Without a report about an object it waits for one.
func (o *operator) reconcile(ctx context.Context) (bool, error) {
	o.mu.Lock()
	now, known := o.seen, o.known
	o.mu.Unlock()
	switch {
	case known == nil:
		return false, errWaiting
	case now.deployment == nil || now.budget == nil:
		return false, nil
	}
	deployment, err := o.options.desiredDeployment(*known)
	if err != nil {
		return false, err
	}
	budget, err := o.options.desiredBudget(*known)
	if err != nil {
		return false, err
	}
	first, err := o.ensure(ctx, o.deployment(), &o.seen.deployment, now.deployment, deployment)
	if err != nil {
		return first, err
	}
	second, err := o.ensure(ctx, o.budget(), &o.seen.budget, now.budget, budget)
	return first || second, err
}

// ensure applies the fields if the live object lacks one, or deletes the operator's object if there must be none.
func (o *operator) ensure(ctx context.Context, object apiserver.Object, into **apiserver.State, live *apiserver.State, desired fields) (bool, error) {
	log := klog.FromContext(ctx)
	switch {
	case desired == nil && (live.Object == nil || live.Object.GetDeletionTimestamp() != nil):
		return false, nil
	case desired == nil && live.Object.GetLabels()[managedLabel] != o.options.labels()[managedLabel]:
		log.Info("Not deleting an object of another owner", "object", object.String())
		return false, nil
	case desired == nil:
		log.Info("Deleting", "object", object.String())
		if err := o.client.Delete(ctx, object, live.Object.GetUID()); err != nil {
			return false, fmt.Errorf("deleting: %w", err)
		}
		return true, nil
	case upToDate(live.Object, desired):
		return false, nil
	}
	log.Info("Applying", "object", object.String())
	applied, err := o.client.Apply(ctx, object, owner, desired)
	if err != nil {
		return false, fmt.Errorf("applying: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if *into == live { // else a later report has arrived
		*into = &apiserver.State{Object: applied}
	}
	return true, nil
}
