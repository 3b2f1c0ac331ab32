// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const leaseRetry = time.Second

// lock returns the Lease, nil without leader election.
func (p *process) lock() (resourcelock.Interface, error) {
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

// lease retries the first read every second while the API server is unavailable: on a single node, where a process often
// starts before the API server, the election itself retries after up to 132 s.
//
// It does not release the Lease of another process. The election reads the Lease before a release, but takes the holder
// from its last renewal, which another process may have outlived while this one was stopped.
type lease struct {
	resourcelock.Interface
	answered atomic.Bool
	holder   atomic.Pointer[string] // by the last read
}

var errOtherHolder = errors.New("another process holds the Lease")

func (l *lease) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	_ = wait.PollUntilContextCancel(ctx, leaseRetry, true, func(ctx context.Context) (bool, error) {
		first := err == nil
		if record, raw, err = l.Interface.Get(ctx); err == nil {
			l.holder.Store(&record.HolderIdentity)
		}
		if l.answered.Load() || !isUnavailable(err) {
			l.answered.Store(true)
			return true, nil
		}
		if first {
			logr.FromContextOrDiscard(ctx).Info("Cannot read the Lease, retrying", "every", leaseRetry.String(), "cause", err.Error())
		}
		return false, nil
	})
	return record, raw, err
}

func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if holder := l.holder.Load(); record.HolderIdentity == "" && holder != nil && *holder != l.Identity() {
		return fmt.Errorf("%w: %q", errOtherHolder, *holder)
	}
	return l.Interface.Update(ctx, record)
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

// noRecorders creates the lock before the manager and its recorders exist: the log says who leads, no event does.
type noRecorders struct{ recorder.Provider }

func (noRecorders) GetEventRecorderFor(string) record.EventRecorder { return nil }
