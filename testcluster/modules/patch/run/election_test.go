// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"errors"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

// startOutage returns a controller that starts a new election during an outage, so that it could not release its Lease.
// On a single node that is likely: a change of the topology also rolls out the API server.
func startOutage(t *testing.T) (*sampleServer, *apiserver.Proxy, *apiserver.Process) {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}})
	s, proxy := newSampleServer(t, server), server.Proxy(t)
	s.setTopology("HighlyAvailable")
	p := s.start(proxy.Address())
	s.eventually("it leads", s.leaseLasts(137))
	p.WaitForLog("Sample reconciled")
	s.reconciles(p, func() { s.setTopology("SingleReplica") })
	proxy.Cut()
	p.WaitForLog("Leader election follows the topology")
	p.WaitForLog("Cannot read the Lease")
	return s, proxy, p
}

func TestReelectionDuringOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for Leases to expire; make proof runs it")
	}
	s, proxy, p := startOutage(t)
	before := s.holder
	proxy.Restore(t)
	s.eventually("it leads with the durations of one node", s.leaseLasts(270))
	s.must(s.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: watched.Name}, Data: map[string]string{"k": "later"},
	}))
	p.WaitForLog(`data="later"`)
	if before == "" || s.holder != before {
		t.Errorf("the Lease went from %q to %q", before, s.holder)
	}
	if n := strings.Count(p.Logs(), "Cannot read the Lease"); n != 1 {
		t.Errorf("the outage is logged %d times, want once", n)
	}
}

func TestEndBeforeItLeadsAgain(t *testing.T) {
	s, proxy, p := startOutage(t)
	before, ended := s.holder, make(chan struct{})
	go func() {
		defer close(ended)
		p.Stop()
	}()
	p.WaitForLog("Stopping and waiting for")
	proxy.Restore(t)
	<-ended
	if err := s.leaseLasts(1)(); err != nil || s.holder != "" || before == "" {
		t.Errorf("%v; the Lease went from %q to %q, want one without a holder", err, before, s.holder)
	}
}

func TestEndOfAnotherReplica(t *testing.T) {
	s := newSampleServer(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}}))
	s.setTopology("SingleReplica")
	s.start("")
	s.eventually("one leads", s.leaseLasts(270))
	before := s.holder
	other := s.start("")
	other.WaitForLog("Attempting to acquire leader lease")
	other.Stop()
	if err := s.leaseLasts(270)(); err != nil || before == "" || s.holder != before {
		t.Errorf("%v; the Lease went from %q to %q", err, before, s.holder)
	}
}

// A process that was stopped, and has lost its Lease without having noticed it, must not release it: two would lead
// until the other one renews its Lease.
func TestLeaseOfAnotherHolderIsNotReleased(t *testing.T) {
	s := newSampleServer(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}}))
	s.setTopology("HighlyAvailable")
	p := s.start("")
	s.eventually("it leads", s.leaseLasts(137))
	p.WaitForLog("Sample reconciled")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: watched.Namespace, Name: "sample-controller.sno.solonode.github.io"}}
	s.must(s.admin.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another"}}`))))
	s.setTopology("SingleReplica")
	p.WaitForLog("Leader election follows the topology")
	s.eventually("its next generation waits for the Lease", func() error {
		if strings.Count(p.Logs(), "Attempting to acquire leader lease") < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	if err := s.leaseLasts(137)(); err != nil || s.holder != "another" {
		t.Errorf("%v; the holder is %q", err, s.holder)
	}
}
