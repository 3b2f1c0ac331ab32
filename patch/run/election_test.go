package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/patch/patchtest"
)

// startOutage starts a controller whose election begins again while the API server does not answer, so that the Lease cannot be released.
// On one node that is likely, because what changes the topology also rolls out the API server. The site has the holder of the Lease.
func startOutage(t *testing.T) (*site, *patchtest.Proxy, *patchtest.Process) {
	t.Helper()
	server := patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}})
	s, line := newSite(t, server), server.Proxy(t)
	s.setTopology("HighlyAvailable")
	p := s.start(line.Address())
	s.eventually("it leads", s.leads(137))
	p.WaitForLog("Sample reconciled")
	s.reconciles(p, func() { s.setTopology("SingleReplica") })
	line.Cut()
	p.WaitForLog("Leader election follows the topology")
	p.WaitForLog("API server does not answer for the Lease")
	return s, line, p
}

func TestReelectionDuringOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for Leases to expire; make proof runs it")
	}
	s, line, p := startOutage(t)
	before := s.holder
	line.Restore(t)
	s.eventually("it leads with the durations of one node", s.leads(270))
	s.must(s.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: watched.Name}, Data: map[string]string{"k": "later"},
	}))
	p.WaitForLog(`data="later"`)
	if before == "" || s.holder != before {
		t.Errorf("the Lease went from %q to %q", before, s.holder)
	}
	if n := strings.Count(p.Logs(), "API server does not answer for the Lease"); n != 1 {
		t.Errorf("it logs %d times that the API server does not answer", n)
	}
}

// A successor needs not wait until the Lease expires.
func TestEndBeforeItLeadsAgain(t *testing.T) {
	s, line, p := startOutage(t)
	before, ended := s.holder, make(chan struct{})
	go func() {
		defer close(ended)
		p.Stop()
	}()
	p.WaitForLog("Stopping and waiting for")
	line.Restore(t)
	<-ended
	if err := s.leads(1)(); err != nil || s.holder != "" || before == "" {
		t.Errorf("%v; the Lease went from %q to %q, want one without a holder", err, before, s.holder)
	}
}

// A replica that ends without having led does not release the Lease of another one.
func TestEndOfAnotherReplica(t *testing.T) {
	s := newSite(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}}))
	s.setTopology("SingleReplica")
	s.start("")
	s.eventually("one leads", s.leads(270))
	before := s.holder
	other := s.start("")
	other.WaitForLog("Attempting to acquire leader lease")
	other.Stop()
	if err := s.leads(270)(); err != nil || before == "" || s.holder != before {
		t.Errorf("%v; the Lease went from %q to %q", err, before, s.holder)
	}
}

func TestIsUnavailable(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":           {},
		"no connection":       {err: errors.New("connection refused"), want: true},
		"no time left":        {err: context.DeadlineExceeded, want: true},
		"shutting down":       {err: fmt.Errorf("getting: %w", apierrors.NewServiceUnavailable("not yet")), want: true},
		"starting":            {err: apierrors.NewInternalError(errors.New("no etcd")), want: true},
		"too busy":            {err: apierrors.NewTooManyRequests("later", 1), want: true},
		"too slow":            {err: apierrors.NewServerTimeout(leases, "get", 1), want: true},
		"there is none":       {err: apierrors.NewNotFound(leases, "one")},
		"it is not permitted": {err: apierrors.NewForbidden(leases, "one", nil)},
		"a status of its own": {err: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict}}},
	} {
		if got := isUnavailable(test.err); got != test.want {
			t.Errorf("%s: isUnavailable(%v) = %t", name, test.err, got)
		}
	}
}
