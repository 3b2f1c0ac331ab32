// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// ErrLeadershipLost is returned if the Lease was not renewed in time, or another process holds it.
var ErrLeadershipLost = errors.New("leader election lost")

// Durations are those of client-go's LeaderElectionConfig.
type Durations struct{ Lease, Renew, Retry time.Duration }

// Election elects a leader by a Lease, with the rules of client-go: the clocks of processes are not compared, a Lease
// that was not renewed for its own duration since this process has read it may be taken.
type Election struct {
	Client                    *Client
	Namespace, Name, Identity string
	// Durations returns the durations of the next renewal: they may change while the process leads.
	Durations func() Durations

	now      func() time.Time // for tests
	observed coordinationv1.LeaseSpec
	since    time.Time
}

// Run waits for the leadership and calls lead, whose context ends with the leadership. It returns nil when the context
// ends, after the Lease was released, and ErrLeadershipLost.
func (e *Election) Run(ctx context.Context, lead func(context.Context)) error {
	if e.now == nil {
		e.now = time.Now
	}
	for {
		held, err := e.try(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Acquiring the Lease failed, retrying", "err", err.Error())
		}
		if held {
			break
		}
		if Wait(ctx, e.Durations().Retry); ctx.Err() != nil {
			return nil
		}
	}
	klog.FromContext(ctx).Info("Leading", "lease", e.Namespace+"/"+e.Name, "identity", e.Identity)
	leading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lead(leading)
	}()
	err := e.renew(ctx)
	stop()
	<-ended
	if err != nil {
		return err
	}
	return e.release(context.WithoutCancel(ctx))
}

// renew returns nil when the context ends.
func (e *Election) renew(ctx context.Context) error {
	last := e.now()
	for {
		durations := e.Durations()
		if Wait(ctx, durations.Retry); ctx.Err() != nil {
			return nil
		}
		limited, cancel := context.WithDeadline(ctx, last.Add(durations.Renew))
		held, err := e.try(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case held:
			last = e.now()
		case err == nil:
			return fmt.Errorf("%w: another process holds Lease %s/%s", ErrLeadershipLost, e.Namespace, e.Name)
		case e.now().Sub(last) >= durations.Renew:
			return fmt.Errorf("%w: Lease %s/%s was not renewed for %s: %w", ErrLeadershipLost, e.Namespace, e.Name, durations.Renew, err)
		default:
			klog.FromContext(ctx).Info("Renewing the Lease failed, retrying", "err", err.Error())
		}
	}
}

func (e *Election) object() Object {
	return Object{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Namespace: e.Namespace, Name: e.Name}
}

// try acquires or renews the Lease, and reports whether this process holds it. Without an error, another one holds it.
func (e *Election) try(ctx context.Context) (bool, error) {
	now := metav1.NewMicroTime(e.now())
	seconds := int32(e.Durations().Lease / time.Second)
	live := &coordinationv1.Lease{}
	err := e.Client.Get(ctx, e.object(), live)
	if apierrors.IsNotFound(err) {
		live = &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &e.Identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: new(int32)},
		}
		err = e.Client.Create(ctx, e.object(), live, nil)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	holder := value(live.Spec.HolderIdentity)
	if value(e.observed.HolderIdentity) != holder || !live.Spec.RenewTime.Equal(e.observed.RenewTime) || e.since.IsZero() {
		e.observed, e.since = live.Spec, now.Time
	}
	if holder != "" && holder != e.Identity && now.Before(&metav1.MicroTime{Time: e.since.Add(time.Duration(value(live.Spec.LeaseDurationSeconds)) * time.Second)}) {
		return false, nil
	}
	if holder != e.Identity {
		transitions := value(live.Spec.LeaseTransitions) + 1
		live.Spec.HolderIdentity, live.Spec.AcquireTime, live.Spec.LeaseTransitions = &e.Identity, &now, &transitions
	}
	live.Spec.LeaseDurationSeconds, live.Spec.RenewTime = &seconds, &now
	err = e.Client.Update(ctx, e.object(), live, nil) // after a conflict the next try reads who holds it
	return err == nil, err
}

// release lets another process lead at once.
func (e *Election) release(ctx context.Context) error {
	live := &coordinationv1.Lease{}
	if err := e.Client.Get(ctx, e.object(), live); err != nil {
		return fmt.Errorf("releasing the Lease: %w", err)
	}
	if value(live.Spec.HolderIdentity) != e.Identity {
		return nil
	}
	now, second, nobody := metav1.NewMicroTime(e.now()), int32(1), ""
	live.Spec.HolderIdentity, live.Spec.RenewTime, live.Spec.LeaseDurationSeconds = &nobody, &now, &second
	if err := e.Client.Update(ctx, e.object(), live, nil); err != nil {
		return fmt.Errorf("releasing the Lease: %w", err)
	}
	return nil
}

func value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
