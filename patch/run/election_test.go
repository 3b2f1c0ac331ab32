// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestIsUnavailable(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no error":      {},
		"no connection": {err: errors.New("connection refused"), want: true},
		"timeout":       {err: context.DeadlineExceeded, want: true},
		"shutting down": {err: fmt.Errorf("getting: %w", apierrors.NewServiceUnavailable("not yet")), want: true},
		"starting":      {err: apierrors.NewInternalError(errors.New("no etcd")), want: true},
		"too busy":      {err: apierrors.NewTooManyRequests("later", 1), want: true},
		"too slow":      {err: apierrors.NewServerTimeout(leases, "get", 1), want: true},
		"not found":     {err: apierrors.NewNotFound(leases, "one")},
		"no roles yet":  {err: apierrors.NewForbidden(leases, "one", nil), want: true},
		"no tokens yet": {err: apierrors.NewUnauthorized("no"), want: true},
		"conflict":      {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict}}},
	} {
		if got := isUnavailable(test.err); got != test.want {
			t.Errorf("%s: isUnavailable(%v) = %t", name, test.err, got)
		}
	}
}

func TestUnthrottled(t *testing.T) {
	given := &rest.Config{Host: "h"}
	if got := unthrottled(given); got.QPS >= 0 || given.QPS != 0 {
		t.Errorf("QPS is %v, the given config's %v; want none, and an unchanged given config", got.QPS, given.QPS)
	}
	if got := unthrottled(&rest.Config{QPS: 7}); got.QPS != 7 {
		t.Errorf("QPS that was set is %v, want 7", got.QPS)
	}
}

// unstable is a Lease on an API server that answers after some failures, as one does that starts.
type unstable struct {
	resourcelock.Interface
	failures []error
}

func (u *unstable) answer() error {
	if len(u.failures) == 0 {
		return nil
	}
	err := u.failures[0]
	u.failures = u.failures[1:]
	return err
}

func (*unstable) Identity() string { return "one" }

func (u *unstable) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "one"}, nil, u.answer()
}

func (u *unstable) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	return u.answer()
}

func TestLeaseRetries(t *testing.T) {
	for name, test := range map[string]struct {
		answered, ending bool
		fails            bool
	}{
		"before the first answer": {},
		"later":                   {answered: true, fails: true},
		"when the process ends to be started again": {answered: true, ending: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				starting := []error{
					errors.New("connection refused"), apierrors.NewUnauthorized("accounts are not read"), apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("roles are not read")),
				}
				server := &unstable{failures: starting}
				l := &lease{Interface: server}
				l.answered.Store(test.answered)
				l.ending.Store(test.ending)
				began := time.Now()
				_, _, err := l.Get(t.Context())
				if failed := err != nil; failed != test.fails || !failed && time.Since(began) != 3*leaseRetry {
					t.Errorf("a read: %v after %s", err, time.Since(began))
				}
				server.failures = starting
				l.answered.Store(test.answered)
				if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); (err != nil) != test.fails {
					t.Errorf("a release: %v", err)
				}
			})
		})
	}
}

// lossy is a Lease on an API server that carries out writes, and answers some of them.
type lossy struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	lost   error // instead of the answer to a write
}

func (*lossy) Identity() string { return "one" }

func (s *lossy) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &s.record, nil, nil
}

func (s *lossy) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	s.record = record
	return s.lost
}

func (s *lossy) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.Update(ctx, record)
}

func TestLeaseReleasesUnanswered(t *testing.T) {
	lost := errors.New("connection reset by peer")
	for name, test := range map[string]struct {
		lost   error
		create bool
		later  string // another holder after the write
		want   string
	}{
		"the answer to an update is lost":            {lost: lost},
		"the answer to a creation is lost":           {lost: lost, create: true},
		"the write was answered":                     {want: "one"}, // then the election releases it
		"another process took over an expired Lease": {lost: lost, later: "two", want: "two"},
		"another process wrote first":                {lost: apierrors.NewConflict(schema.GroupResource{}, "one", nil), later: "two", want: "two"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &lossy{lost: test.lost}
			l := &lease{Interface: server}
			l.answered.Store(true)
			write := l.Update
			if test.create {
				write = l.Create
			}
			if err := write(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "one"}); !errors.Is(err, test.lost) {
				t.Fatalf("the write: %v, want %v", err, test.lost)
			}
			server.lost = nil
			if test.later != "" {
				server.record.HolderIdentity = test.later
			}
			if err := l.releaseUnanswered(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			if got := server.record.HolderIdentity; got != test.want {
				t.Errorf("the holder is %q, want %q", got, test.want)
			}
		})
	}
}
