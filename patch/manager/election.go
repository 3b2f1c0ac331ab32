package manager

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

// askAgain is how often an API server that is away is asked for a Lease that is not held yet.
const askAgain = time.Second

// lastWord is how long a process that ends tries to give up a Lease that it does not lead with: little of the 30 seconds that a pod is given.
const lastWord = 5 * time.Second

// newIdentity names this process in its Lease, through all its generations: a Lease that could not be given up, because the API server was
// away just then, is the next generation's at once, and not only when it has expired, after up to 270 seconds.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("naming this process in its Lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// lock is the Lease as controller-runtime makes it, but held under the process's name. Without leader election it is nil.
func (p *process) lock() (*lease, error) {
	made, err := leaderelection.NewResourceLock(rest.CopyConfig(p.rest), noRecorders{}, leaderelection.Options{
		LeaderElection: p.options.LeaderElect, LeaderElectionID: p.name + ".sno.solonode.github.io",
		LeaderElectionNamespace: p.options.LeaderElectNamespace, RenewDeadline: p.class.RenewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	lock, ok := made.(*resourcelock.LeaseLock)
	if !ok {
		return nil, nil
	}
	lock.LockConfig.Identity = p.identity
	return &lease{LeaseLock: lock}, nil
}

// giveUp gives the Lease up if it still is in the process's name, which the election does by itself only while it leads. An election that began
// while the API server was away may not have come to lead again when the process is told to end, and its successor would wait until the
// Lease expires. No controller may run any more.
func (p *process) giveUp(ctx context.Context) error {
	lock, err := p.lock()
	if err != nil || lock == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
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
		return fmt.Errorf("giving up the Lease %s: %w", lock.Describe(), err)
	}
	return nil
}

// lease is a Lease that waits for the API server as long as it is not held. The election itself would ask again only after its retry
// period, up to 132 seconds, and a process that begins a new election on a single node may well do so while the API server is away.
type lease struct {
	*resourcelock.LeaseLock
	held atomic.Bool
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (held *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	log := logr.FromContextOrDiscard(ctx)
	_ = wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
		first := err == nil
		held, raw, err = l.LeaseLock.Get(ctx)
		if l.held.Load() || !isAway(err) {
			return true, nil
		}
		if first {
			log.Info("API server does not answer for the Lease, asking again", "every", askAgain.String(), "cause", err.Error())
		}
		return false, nil
	})
	return held, raw, err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.keep(l.LeaseLock.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.keep(l.LeaseLock.Update(ctx, record))
}

func (l *lease) keep(err error) error {
	if err == nil {
		l.held.Store(true)
	}
	return err
}

// isAway tells an API server that does not answer, or only that it cannot, from one that says no.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// noRecorders stands in for the manager's recorders until there is a manager.
type noRecorders struct{}

func (noRecorders) GetEventRecorderFor(string) record.EventRecorder { return nil }
func (noRecorders) GetEventRecorder(string) events.EventRecorder    { return nil }
