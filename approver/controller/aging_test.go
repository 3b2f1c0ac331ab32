// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/topology"
)

var errNoAnswer = errors.New("no answer")

// requestLists lists requests by signer.
type requestLists struct {
	client.Reader
	mu  sync.Mutex
	all []certificatesv1.CertificateSigningRequest
	err error
}

// change makes a change that a read in the background sees whole.
func (r *requestLists) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *requestLists) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	signer, _ := (&client.ListOptions{}).ApplyOptions(options).FieldSelector.RequiresExactMatch("spec.signerName")
	r.mu.Lock()
	defer r.mu.Unlock()
	list.(*certificatesv1.CertificateSigningRequestList).Items = slices.DeleteFunc(slices.Clone(r.all),
		func(request certificatesv1.CertificateSigningRequest) bool { return request.Spec.SignerName != signer })
	return r.err
}

// An old request is reported until it is decided, and only where the patch is needed.
func TestRequestsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lists, sink, state := &requestLists{}, &combinedSink{Sink: status.None{}}, patch.InForce
		a := &aging{live: lists, limits: decision.DefaultAgeLimits, requestsEvery: time.Minute,
			reporter: &status.Reporter{Module: approver.Name, Prefix: agingPrefix, Sink: sink}}
		reconcile := a.wrap(func(context.Context, *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
			return nil, patch.Result{State: state}, nil
		})
		expect := func(later time.Duration, reason string, pending int, after time.Duration) {
			t.Helper()
			<-time.After(later)
			var result patch.Result
			for range 2 { // the first starts or stops the reads
				var err error
				if _, result, err = reconcile(ctx, nil); err != nil {
					t.Fatal(err)
				}
				<-time.After(a.requestsEvery)
				synctest.Wait() // the read that is due at the same time has ended
			}
			got := patch.ReasonAsExpected
			if report := a.current().Observe(time.Now()); report != nil {
				got = report.Reason
			}
			if got != reason || a.current().Pending != pending || result.After != after {
				t.Errorf("%s with %d requests, again after %s; want %s with %d after %s", got, a.current().Pending, result.After, reason, pending, after)
			}
			if len(sink.certificates) != 1 || sink.certificates[0].Type != "ApproverTopologyCertificatesPatchFailing" {
				t.Errorf("conditions %v", sink.certificates)
			}
		}
		add := func(signer string) {
			request := certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer}}
			request.CreationTimestamp.Time = time.Now()
			lists.change(func() { lists.all = append(lists.all, request) })
		}
		add("example.com/other")
		expect(0, "AsExpected", 0, time.Minute)
		add(certificatesv1.KubeletServingSignerName)
		add(certificatesv1.KubeAPIServerClientKubeletSignerName)
		expect(0, "AsExpected", 2, time.Minute)
		expect(16*time.Minute, "RequestsPending", 2, time.Minute)
		if age := a.current().OldestAge(time.Now()); age < 18*time.Minute || age > 21*time.Minute {
			t.Errorf("the oldest is %s old", age)
		}
		state = patch.NotNeeded
		expect(time.Minute, "AsExpected", 0, 0)
		state = patch.InForce
		expect(0, "RequestsPending", 2, time.Minute)
		lists.change(func() { lists.err = errNoAnswer })
		expect(time.Minute, "RequestsPending", 2, time.Minute)
		lists.change(func() {
			lists.err = nil
			for i, decided := range []certificatesv1.RequestConditionType{certificatesv1.CertificateDenied, certificatesv1.CertificateApproved} {
				lists.all[i+1].Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: decided, Status: corev1.ConditionTrue}}
			}
		})
		expect(time.Minute, "AsExpected", 0, time.Minute)
	})
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
		a := &aging{live: &pages, limits: decision.DefaultAgeLimits, requestsEvery: time.Hour, kubeletsEvery: time.Hour,
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
