// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/patch/status"
)

var errNoAnswer = errors.New("no answer")

// An old request is reported until it is decided, and only where the patch is needed.
func TestRequestsPending(t *testing.T) {
	c, now := install(t), clocktesting.NewFakeClock(time.Now())
	var a *aging
	l := c.ReconcilerOf(func(l *patchtest.Reconciler) (controller.ReconcileFunc, error) {
		reconcile, err := l.Module.Reconciler(l.Environment)
		a = l.Module.(*Module).aging(l.Environment)
		a.clock, a.reporter = now, &status.Reporter{Module: approver.Name, Prefix: agingPrefix, Sink: &combinedSink{Sink: status.None{}}}
		return a.wrap(reconcile), err
	})
	l.OtherClients = []func(){c.runOtherControllers}
	a.requestsEvery = 100 * time.Millisecond
	expect := func(later time.Duration, reason string, pending int) {
		t.Helper()
		now.Step(later)
		l.Reconcile() // starts or stops the reads
		c.Eventually("requests are read", func() error {
			if got := a.current().Pending; got != pending {
				return fmt.Errorf("%d requests are pending, want %d", got, pending)
			}
			return nil
		})
		l.Reconcile()
		conditions := a.reporter.Sink.(*combinedSink).certificates
		if len(conditions) != 1 || conditions[0].Type != "ApproverTopologyCertificatesPatchFailing" {
			t.Errorf("conditions %v", conditions)
		}
		got := "AsExpected"
		if report := a.current().Observe(now.Now()); report != nil {
			got = report.Reason
		}
		if got != reason {
			t.Errorf("the reason is %s, want %s", got, reason)
		}
	}
	c.createRequest("example.com/other")
	l.Settle()
	if result := l.Reconcile(); result.After != a.requestsEvery {
		t.Errorf("the next reconciliation is after %s", result.After)
	}
	expect(0, "AsExpected", 0)
	one := c.createRequest(certificatesv1.KubeletServingSignerName)
	c.createRequest(certificatesv1.KubeAPIServerClientKubeletSignerName)
	expect(0, "AsExpected", 2)
	expect(16*time.Minute, "RequestsPending", 2)
	if age := a.current().OldestAge(now.Now()); age < 15*time.Minute || age > 17*time.Minute {
		t.Errorf("the oldest is %s old", age)
	}
	c.setTopology(ha)
	l.Settle()
	expect(time.Minute, "AsExpected", 0)
	if result := l.Reconcile(); result.After != 0 {
		t.Errorf("the next reconciliation is after %s where the patch is not needed", result.After)
	}
	c.setTopology(sr)
	l.Settle()
	expect(0, "RequestsPending", 2)
	l.CrashInjector.FailReads("/certificatesigningrequests")
	expect(time.Minute, "RequestsPending", 2)
	l.CrashInjector.FailReads("")
	list := &certificatesv1.CertificateSigningRequestList{}
	c.NoError(c.Admin.List(t.Context(), list))
	for i := range list.Items {
		r := &list.Items[i]
		decision := certificatesv1.CertificateApproved
		if r.Name == one {
			decision = certificatesv1.CertificateDenied
		}
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: decision, Status: corev1.ConditionTrue, Reason: "ByHand"}}
		c.NoError(c.Admin.SubResource("approval").Update(t.Context(), r))
	}
	expect(time.Minute, "AsExpected", 0)
}

// twoPages lists Nodes in two pages.
type twoPages struct {
	client.Reader
	err atomic.Bool
}

func (p *twoPages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	nodes, ok := list.(*corev1.NodeList)
	if !ok {
		return nil // there are no requests
	}
	nodes.Items = make([]corev1.Node, options.Limit)
	if options.Continue == "" {
		nodes.Continue = "second"
		nodes.Items[0].Name = "hangs"
	}
	if p.err.Load() {
		return errNoAnswer
	}
	return nil
}

// Every kubelet is called, a few at a time, once per interval, while the patch is wanted. The others count if one does
// not answer.
func TestCertificatesExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, open, most atomic.Int32
		pages := twoPages{}
		var left atomic.Int64 // in days
		left.Store(20)
		a := &aging{live: &pages, clock: clock.RealClock{}, limits: approver.DefaultAgeLimits, requestsEvery: time.Hour, kubeletsEvery: time.Hour,
			call: func(_ context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
				calls.Add(1)
				if now := open.Add(1); now > most.Load() {
					most.Store(now)
				}
				defer open.Add(-1)
				<-time.After(time.Second)
				if node.Name == "hangs" {
					return nil, errNoAnswer
				}
				ends := time.Now().AddDate(0, 0, int(left.Load()))
				return []*x509.Certificate{{NotBefore: ends.AddDate(0, 0, -30), NotAfter: ends}}, nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		expect := func(later time.Duration, wantCalls int32, certificates int, failing bool) {
			t.Helper()
			<-time.After(later)
			if known := a.current(); calls.Load() != wantCalls || known.Certificates != certificates || (known.Observe(time.Now()) != nil) != failing {
				t.Errorf("%d calls, %d certificates, %v", calls.Load(), known.Certificates, known.Observe(time.Now()))
			}
		}
		const nodes = 2 * nodesPage
		a.enable(ctx, patch.Waiting)
		expect(2*time.Hour, 0, 0, false)
		a.enable(ctx, patch.InForce)
		a.enable(ctx, patch.Progressing)
		expect(30*time.Minute, nodes, nodes-1, false)
		left.Store(2)
		expect(time.Hour, 2*nodes, nodes-1, true)
		pages.err.Store(true)
		expect(time.Hour, 2*nodes, nodes-1, true)
		pages.err.Store(false)
		a.enable(ctx, patch.NotNeeded)
		expect(2*time.Hour, 2*nodes, 0, false)
		a.enable(ctx, patch.InForce)
		<-time.After(500 * time.Millisecond)
		a.enable(ctx, patch.NotNeeded) // later results are dropped
		expect(2*time.Hour, 2*nodes+parallelCalls, 0, false)
		if most.Load() > parallelCalls {
			t.Errorf("%d calls at once", most.Load())
		}
		cancel()
	})
}
