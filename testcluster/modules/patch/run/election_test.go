// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

// A process that starts during an outage leads as soon as the API server answers, and starts again with the durations
// of the topology, which it could not read before.
func TestStartDuringOutage(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}})
	s, proxy := newSampleServer(t, server), server.Proxy(t)
	s.setTopology("SingleReplica")
	proxy.Cut()
	p := s.start(proxy.Address())
	p.WaitForLog("API server is not ready for a request for the Lease")
	proxy.Restore(t)
	s.ends(p, "leader election follows the topology SingleReplica")
	if n := strings.Count(p.Logs(), "API server is not ready for a request for the Lease"); n != 1 {
		t.Errorf("the outage is logged %d times, want once", n)
	}
	s.start(proxy.Address())
	s.eventually("it leads with the durations of one node", s.leaseLasts(270))
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
	p.WaitForLog("leader election follows the topology")
	p.Stop()
	if err := s.leaseLasts(137)(); err != nil || s.holder != "another" {
		t.Errorf("%v; the holder is %q", err, s.holder)
	}
}
