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
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
)

const (
	// leaseRetry is how often to read a Lease that is not held yet while the API server does not answer.
	leaseRetry = time.Second
	// releaseTimeout bounds the release of the Lease at the end of the process. A pod has 30 s to end.
	releaseTimeout = 5 * time.Second
)

// newIdentity returns the identity of this process in its Lease. All generations of the manager have the same one, so that a Lease that
// could not be released, because the API server did not answer, needs not expire first, which takes up to 270 s.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name for the Lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// lock returns controller-runtime's Lease with the identity of the process, nil without leader election.
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

// releaseLease releases the Lease if this process holds it, after all controllers have stopped. The election itself releases it only while
// it leads, and one that began while the API server did not answer may not lead again before the process ends.
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
	case held.HolderIdentity != p.identity:
		return nil
	}
	now := metav1.Now()
	if err := lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	}); err != nil {
		return fmt.Errorf("releasing the Lease %s: %w", lock.Describe(), err)
	}
	return nil
}

// lease is a Lease that, until it is held, is read every second while the API server does not answer. The election itself tries again after
// its retry period, up to 132 s, and on a single node the API server is often unavailable when an election begins. Once it is held, a read
// must fail at once, or the end of the process would wait for the API server.
type lease struct {
	*resourcelock.LeaseLock
	held atomic.Bool
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	_ = wait.PollUntilContextCancel(ctx, leaseRetry, true, func(ctx context.Context) (bool, error) {
		first := err == nil
		record, raw, err = l.LeaseLock.Get(ctx)
		if l.held.Load() || !isUnavailable(err) {
			return true, nil
		}
		if first {
			logr.FromContextOrDiscard(ctx).Info("API server does not answer for the Lease, retrying", "every", leaseRetry.String(), "cause", err.Error())
		}
		return false, nil
	})
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.setHeld(l.LeaseLock.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.setHeld(l.LeaseLock.Update(ctx, record))
}

func (l *lease) setHeld(err error) error {
	if err == nil {
		l.held.Store(true)
	}
	return err
}

// isUnavailable reports whether the API server did not answer, or answered that it cannot process requests.
func isUnavailable(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err != nil
	}
	code := answer.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// noRecorders is used before the manager and its recorders exist.
type noRecorders struct{}

func (noRecorders) GetEventRecorderFor(string) record.EventRecorder { return nil }
func (noRecorders) GetEventRecorder(string) events.EventRecorder    { return nil }
