// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// leases is an API server with one Lease.
type leases struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	down    bool
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodGet {
		var written coordinationv1.Lease
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		current := ""
		if l.lease != nil {
			current = l.lease.ResourceVersion
		}
		if written.ResourceVersion != current {
			w.WriteHeader(http.StatusConflict)
			return
		}
		l.version++
		written.ResourceVersion = strconv.Itoa(l.version)
		l.lease = &written
	}
	if l.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(l.lease)
}

func (l *leases) set(change func(*leases)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// state returns the holder, the duration and the transitions.
func (l *leases) state() (state [3]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		spec := l.lease.Spec
		state = [3]string{value(spec.HolderIdentity), strconv.Itoa(int(value(spec.LeaseDurationSeconds))), strconv.Itoa(int(value(spec.LeaseTransitions)))}
	}
	return state
}

func (l *leases) expect(t *testing.T, want [3]string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, timeout, true, func(context.Context) (bool, error) { return l.state() == want, nil })
	if err != nil {
		t.Fatalf("%v: %s", err, cmp.Diff(want, l.state()))
	}
}

// candidate runs an election until stop; the channel has its error. led is closed when it leads.
type candidate struct {
	stop  context.CancelFunc
	led   chan struct{}
	ended chan error
}

func run(t *testing.T, l *leases, identity string, durations func() Durations) candidate {
	t.Helper()
	client := serve(t, l.ServeHTTP)
	ctx, stop := context.WithCancel(t.Context())
	c := candidate{stop, make(chan struct{}), make(chan error, 1)}
	election := &Election{Client: client, Namespace: lease.Namespace, Name: lease.Name, Identity: identity, Durations: durations}
	go func() {
		c.ended <- election.Run(ctx, func(ctx context.Context) {
			close(c.led)
			<-ctx.Done()
		})
	}()
	t.Cleanup(stop)
	return c
}

// received waits for a value, or for the end of the channel.
func received[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(timeout):
		t.Fatal("nothing happens")
		panic("unreachable")
	}
}

func quick(seconds int) func() Durations {
	return func() Durations {
		return Durations{Lease: time.Duration(seconds) * time.Second, Renew: 200 * time.Millisecond, Retry: 10 * time.Millisecond}
	}
}

func TestElection(t *testing.T) {
	l := &leases{}
	first := run(t, l, "first", quick(100))
	received(t, first.led)
	l.expect(t, [3]string{"first", "100", "0"})
	second := run(t, l, "second", quick(200))
	first.stop()
	if err := received(t, first.ended); err != nil {
		t.Error(err)
	}
	received(t, second.led) // at once, because the first has released the Lease
	l.expect(t, [3]string{"second", "200", "1"})

	t.Log("Another process takes the Lease")
	l.set(func(l *leases) {
		other := "other"
		l.lease.Spec.HolderIdentity = &other
		l.version++
		l.lease.ResourceVersion = strconv.Itoa(l.version)
	})
	if err := received(t, second.ended); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("the error is %v", err)
	}
	l.expect(t, [3]string{"other", "200", "1"})
}

// A holder that has ended without a release is replaced after the duration of its Lease, and not before.
func TestElectionAfterACrash(t *testing.T) {
	l := &leases{}
	crashed, seconds := "crashed", int32(1)
	l.lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &crashed, LeaseDurationSeconds: &seconds}}
	began := time.Now()
	next := run(t, l, "next", quick(100))
	received(t, next.led)
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("the Lease was taken after %s", waited)
	}
	l.expect(t, [3]string{"next", "100", "1"})
}

// The durations of the next renewal apply while the process leads, and an outage shorter than the deadline is survived.
func TestElectionFollowsDurations(t *testing.T) {
	l := &leases{}
	var mu sync.Mutex
	seconds := 100
	leader := run(t, l, "leader", func() Durations {
		mu.Lock()
		defer mu.Unlock()
		return Durations{Lease: time.Duration(seconds) * time.Second, Renew: timeout, Retry: 10 * time.Millisecond}
	})
	received(t, leader.led)
	l.expect(t, [3]string{"leader", "100", "0"})
	l.set(func(l *leases) { l.down = true })
	mu.Lock()
	seconds = 270
	mu.Unlock()
	l.set(func(l *leases) { l.down = false })
	l.expect(t, [3]string{"leader", "270", "0"})
}

// A leader that cannot renew stops before another one may lead.
func TestElectionEndsWithAnOutage(t *testing.T) {
	l := &leases{}
	leader := run(t, l, "leader", quick(100))
	received(t, leader.led)
	l.set(func(l *leases) { l.down = true })
	if err := received(t, leader.ended); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("the error is %v", err)
	}
}
