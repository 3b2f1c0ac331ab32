package controller

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
)

// later moves the clock of the controller.
func (l *looker) later(by time.Duration) { *l.clock = l.clock.Add(by) }

// tells is what the condition beside those of the patch says; empty while it is not there.
func (l *looker) tells() string {
	l.Helper()
	l.look()
	shown, ok := l.patcher.aging.reporter.Sink.(*kept)
	if !ok || len(shown.conditions) != 1 || shown.conditions[0].Type != "ApproverTopologyCertificatesPatchFailing" {
		l.Fatalf("conditions beside the patch: %v", shown)
	}
	return string(shown.conditions[0].Status) + " " + shown.conditions[0].Reason
}

// A request that waits too long is told when that has lasted, and no more when somebody has decided, or on a cluster that is left alone.
func TestRequestsPending(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	l.settle()
	a := l.patcher.aging
	see := func() string {
		c.must(a.lookAtRequests(t.Context()))
		return l.tells()
	}
	c.request("example.com/somebody-elses")
	if got := see(); got != "False AsExpected" || a.known().Pending != 0 {
		t.Errorf("without a request of a node: %s, %d", got, a.known().Pending)
	}
	one := c.request(certificatesv1.KubeletServingSignerName)
	c.request(certificatesv1.KubeAPIServerClientKubeletSignerName)
	if got := see(); got != "False AsExpected" || a.known().Pending != 2 {
		t.Errorf("with fresh ones: %s, %d", got, a.known().Pending)
	}
	l.later(16 * time.Minute)
	if got := see(); got != "False AsExpected" { // a failure has to last
		t.Errorf("after 16 minutes: %s", got)
	}
	if age := a.known().OldestAge(a.now()); age < 15*time.Minute || age > 17*time.Minute {
		t.Errorf("the oldest is %s old", age)
	}
	l.later(3 * time.Minute)
	if got := see(); got != "True RequestsPending" {
		t.Errorf("when it lasts: %s", got)
	}
	c.flip(ha)
	if got := l.tells(); got != "False AsExpected" || a.known().Pending != 0 {
		t.Errorf("on a cluster that is left alone: %s, %d", got, a.known().Pending)
	}
	c.flip(sr)
	l.settle()
	list := &certificatesv1.CertificateSigningRequestList{}
	c.must(c.admin.List(t.Context(), list))
	for i := range list.Items {
		r := &list.Items[i]
		kind := certificatesv1.CertificateApproved
		if r.Name == one {
			kind = certificatesv1.CertificateDenied
		}
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "ByHand"}}
		c.must(c.admin.SubResource("approval").Update(t.Context(), r))
	}
	if got := see(); got != "False AsExpected" || a.known().Pending != 0 {
		t.Errorf("decided on: %s, %d", got, a.known().Pending)
	}
}

var errNoAnswer = errors.New("no answer")

// Every kubelet is called, a few at a time; one that does not answer hides nothing.
func TestCertificatesExpiring(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	l.settle()
	a, now := l.patcher.aging, *l.clock
	const nodes = nodesPage + 20 // two pages
	for i := range nodes {
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i)}}, "kubelet")
	}
	left := 20 * 24 * time.Hour
	var calls, open, most atomic.Int32
	a.call = func(_ context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
		calls.Add(1)
		for here := open.Add(1); ; {
			if seen := most.Load(); here <= seen || most.CompareAndSwap(seen, here) {
				break
			}
		}
		defer open.Add(-1)
		ends := now.Add(25 * 24 * time.Hour)
		switch node.Name {
		case "node-000":
			return nil, errNoAnswer
		case fmt.Sprintf("node-%03d", nodes-1):
			ends = now.Add(left)
		}
		return []*x509.Certificate{{NotBefore: ends.Add(-30 * 24 * time.Hour), NotAfter: ends}}, nil
	}
	see := func() string {
		c.must(a.lookAtKubelets(t.Context()))
		return l.tells()
	}
	if got := see(); got != "False AsExpected" || calls.Load() != nodes || most.Load() > parallelCalls {
		t.Errorf("%s; %d calls, %d at once", got, calls.Load(), most.Load())
	}
	left = 2 * 24 * time.Hour
	if got := see(); got != "False AsExpected" { // a failure has to last
		t.Errorf("close to its end: %s", got)
	}
	l.later(3 * time.Minute)
	if got := l.tells(); got != "True CertificatesExpiring" {
		t.Errorf("when it lasts: %s", got)
	}
	left = -time.Hour
	if got := see(); got != "True CertificatesExpiring" {
		t.Errorf("beyond its end: %s", got)
	}
	left = 29 * 24 * time.Hour
	if got := see(); got != "False AsExpected" {
		t.Errorf("renewed: %s", got)
	}
}

// What cannot be read leaves what was known before.
func TestAgingUnreadable(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	a := l.patcher.aging
	a.call = func(context.Context, *corev1.Node) ([]*x509.Certificate, error) { return nil, errNoAnswer }
	a.concerned.Store(true)
	c.request(certificatesv1.KubeletServingSignerName)
	c.must(a.lookAtRequests(t.Context()))
	l.fuse.Unreadable("/")
	if err := errors.Join(a.lookAtRequests(t.Context())); err == nil || a.known().Pending != 1 {
		t.Errorf("requests: %v, %d pending", err, a.known().Pending)
	}
	if err := a.lookAtKubelets(t.Context()); err == nil {
		t.Error("nodes that cannot be read are none")
	}
}

// It looks by itself, wakes the controller, and ends with its context.
func TestAgingLooks(t *testing.T) {
	c := install(t)
	l := c.looker(approver.NodeClientOff)
	a := l.patcher.aging
	a.requestsEvery, a.kubeletsEvery = 50*time.Millisecond, 50*time.Millisecond
	called := make(chan string, 100)
	a.call = func(_ context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
		called <- node.Name
		return nil, errNoAnswer
	}
	c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, "kubelet")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Start(ctx) }()
	l.settle() // until it is known that this cluster is concerned, nobody is called
	for range 2 {
		<-a.wake
		<-called
	}
	c.request(certificatesv1.KubeletServingSignerName)
	for a.known().Pending != 1 {
		<-a.wake
	}
	c.flip(ha)
	l.settle()
	if a.known().Pending != 0 || a.concerned.Load() {
		t.Error("it looks at a cluster that is left alone")
	}
	cancel()
	if err := <-ended; err != nil || !a.NeedLeaderElection() {
		t.Errorf("it ended with %v", err)
	}
}

// What is seen by a look that ends after the cluster was left alone is not kept: it would be reported for ever.
func TestAgingSeenTooLate(t *testing.T) {
	c := install(t)
	a := c.looker(approver.NodeClientOff).patcher.aging
	c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, "kubelet")
	for name, leftAlone := range map[string]bool{"in time": false, "too late": true} {
		a.concerned.Store(true)
		a.call = func(context.Context, *corev1.Node) ([]*x509.Certificate, error) {
			if leftAlone {
				a.concerned.Store(false)
				a.forget()
			}
			return []*x509.Certificate{{NotBefore: a.now().Add(-time.Hour), NotAfter: a.now().Add(time.Minute)}}, nil
		}
		if err := a.lookAtKubelets(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kept := a.known() != (approver.Aging{Limits: a.limits}); kept == leftAlone {
			t.Errorf("%s: kept is %t", name, kept)
		}
	}
}

// Both tell in one write, so that neither takes the other's conditions off.
func TestBeside(t *testing.T) {
	t.Parallel()
	shown := &kept{}
	again, err := shown.Show(t.Context(), nil, patch.Result{State: patch.Failed, Reason: "RequestsPending"}.Conditions(agingPrefix, true))
	if again != 0 || err != nil {
		t.Fatal(again, err)
	}
	var got []operatorv1.OperatorCondition
	sink := beside{sinkFunc(func(conditions []operatorv1.OperatorCondition) { got = conditions }), shown}
	if _, err := sink.Show(t.Context(), nil, patch.Result{}.Conditions(approver.ConditionPrefix, false)); err != nil {
		t.Fatal(err)
	}
	types := ""
	for _, condition := range got {
		types += condition.Type + "=" + string(condition.Status) + " "
	}
	const want = "ApproverTopologyPatchFailing=False ApproverTopologyPatchInProgress=False ApproverTopologyPatchInForce=True ApproverTopologyCertificatesPatchFailing=True "
	if types != want {
		t.Errorf("%s, want %s", types, want)
	}
}

type sinkFunc func([]operatorv1.OperatorCondition)

func (f sinkFunc) Show(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	f(conditions)
	return 0, nil
}
