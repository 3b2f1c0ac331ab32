// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	leaseRetry     = time.Second // while the API server is unavailable
	releaseTimeout = 5 * time.Second
)

// lock returns the Lease, nil without leader election.
func (p *process) lock() (*lease, error) {
	lock, err := leaderelection.NewResourceLock(rest.CopyConfig(p.rest), noRecorders{}, leaderelection.Options{
		LeaderElection: p.options.LeaderElect, LeaderElectionID: p.name + ".sno.solonode.github.io",
		LeaderElectionNamespace: p.options.LeaderElectNamespace, RenewDeadline: p.class.RenewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	if lock == nil {
		return nil, nil
	}
	return &lease{Interface: lock}, nil
}

// lease retries requests while the API server is unavailable, until the first answer and when the process ends to start
// again. On a single node a process often starts before the API server does, and the election itself retries after up
// to 132 s; it does not retry a release, without which the next process waits for up to 270 s.
//
// It does not release the Lease of another process. The election reads the Lease before a release, but takes the holder
// from its last renewal, which another process may have outlived while this one was stopped.
type lease struct {
	resourcelock.Interface
	answered   atomic.Bool
	ending     atomic.Bool
	unanswered atomic.Bool            // a write for this process, which may have taken effect
	holder     atomic.Pointer[string] // by the last read
}

var errOtherHolder = errors.New("another process holds the Lease")

func (l *lease) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.retry(ctx, func() error {
		record, raw, err = l.Interface.Get(ctx)
		return err
	})
	if err == nil {
		l.holder.Store(&record.HolderIdentity)
	}
	return record, raw, err
}

func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if holder := l.holder.Load(); record.HolderIdentity == "" && holder != nil && *holder != l.Identity() {
		return fmt.Errorf("%w: %q", errOtherHolder, *holder)
	}
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord, request func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	err := l.retry(ctx, func() error { return request(ctx, record) })
	l.unanswered.Store(record.HolderIdentity == l.Identity() && isUnavailable(err))
	return err
}

// releaseUnanswered releases a Lease that this process holds without leading: the answer to its write was lost, and the
// process ended before the election read the Lease again. The next process would wait for up to 270 s.
func (l *lease) releaseUnanswered(ctx context.Context) error {
	if !l.unanswered.Load() {
		return nil
	}
	l.ending.Store(true)
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	record, _, err := l.Get(ctx)
	if err != nil || record.HolderIdentity != l.Identity() {
		return client.IgnoreNotFound(err)
	}
	now := metav1.Now()
	return l.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}

func (l *lease) retry(ctx context.Context, request func() error) (err error) {
	logged := false
	_ = wait.PollUntilContextCancel(ctx, leaseRetry, true, func(ctx context.Context) (bool, error) {
		err = request()
		if l.answered.Load() && !l.ending.Load() || !isUnavailable(err) {
			l.answered.Store(true)
			return true, nil
		}
		if !logged {
			logr.FromContextOrDiscard(ctx).Info("API server is not ready for a request for the Lease, retrying",
				"every", leaseRetry.String(), "cause", err.Error())
			logged = true
		}
		return false, nil
	})
	return err
}

// isUnavailable reports whether the API server did not answer, or cannot process requests. One that is starting refuses
// everybody, until it has read the accounts and their rights.
func isUnavailable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || slices.Contains([]int32{http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden}, code)
}

// noRecorders creates the lock before the manager and its recorders exist: the log says who leads, no event does.
type noRecorders struct{ recorder.Provider }

func (noRecorders) GetEventRecorderFor(string) record.EventRecorder { return nil }
