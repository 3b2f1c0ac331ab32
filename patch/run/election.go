// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	leaseRetry     = time.Second     // interval of reads while the API server is unavailable and the Lease is not held
	releaseTimeout = 5 * time.Second // a pod has 30 s to end
)

// newIdentity returns the identity of this process in its Lease. All generations of the manager share it: a Lease that
// could not be released during an outage would otherwise have to expire first, which takes up to 270 s.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name for the Lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// lock returns the Lease, nil without leader election.
func (p *process) lock() (*lease, error) {
	created, err := leaderelection.NewResourceLock(rest.CopyConfig(p.rest), noRecorders{}, leaderelection.Options{
		LeaderElection: p.options.LeaderElect, LeaderElectionID: p.name + ".sno.solonode.github.io",
		LeaderElectionNamespace: p.options.LeaderElectNamespace, RenewDeadline: p.class.RenewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	lock, ok := created.(*resourcelock.LeaseLock)
	if !ok {
		return nil, nil
	}
	lock.LockConfig.Identity = p.identity
	return &lease{LeaseLock: lock}, nil
}

// releaseLease releases the Lease if this process holds it, after all controllers have stopped. The election itself
// releases it only while it leads, which one that began during an outage may never do.
func (p *process) releaseLease(ctx context.Context) error {
	lock, err := p.lock()
	if err != nil || lock == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	held, _, err := lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the Lease %s: %w", lock.Describe(), err)
	}
	now := metav1.Now()
	if err := lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	}); err != nil && !errors.Is(err, errOtherHolder) {
		return fmt.Errorf("releasing the Lease %s: %w", lock.Describe(), err)
	}
	return nil
}

// lease retries reads every second while the API server is unavailable, until the Lease is held: the election retries
// after up to 132 s, and on a single node it often begins during an outage. Once the Lease is held, reads fail at once,
// so that the process can end during an outage.
//
// It does not release the Lease of another process. The election reads the Lease before a release, but takes the holder
// from its last renewal, which another process may have outlived while this one was stopped.
type lease struct {
	*resourcelock.LeaseLock
	held   atomic.Bool
	holder atomic.Pointer[string] // by the last read
}

var errOtherHolder = errors.New("another process holds the Lease")

func (l *lease) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	_ = wait.PollUntilContextCancel(ctx, leaseRetry, true, func(ctx context.Context) (bool, error) {
		first := err == nil
		if record, raw, err = l.LeaseLock.Get(ctx); err == nil {
			l.holder.Store(&record.HolderIdentity)
		}
		if l.held.Load() || !isUnavailable(err) {
			return true, nil
		}
		if first {
			logr.FromContextOrDiscard(ctx).Info("Cannot read the Lease, retrying", "every", leaseRetry.String(), "cause", err.Error())
		}
		return false, nil
	})
	return record, raw, err
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.setHeld(l.LeaseLock.Create(ctx, record))
}

func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if holder := l.holder.Load(); record.HolderIdentity == "" && holder != nil && *holder != l.Identity() {
		return fmt.Errorf("%w: %q", errOtherHolder, *holder)
	}
	return l.setHeld(l.LeaseLock.Update(ctx, record))
}

func (l *lease) setHeld(err error) error {
	if err == nil {
		l.held.Store(true)
	}
	return err
}

// isUnavailable reports whether the API server did not answer, or cannot process requests.
func isUnavailable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// noRecorders creates the lock before the manager and its recorders exist. The lock asks for a recorder of the old API
// only; the type of the other differs between versions of controller-runtime.
type noRecorders struct{ recorder.Provider }

func (noRecorders) GetEventRecorderFor(string) record.EventRecorder { return nil }
