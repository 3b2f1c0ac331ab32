package controller

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/controller/pages"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/status"
)

const (
	// agingPrefix begins the type of the condition that tells what waits.
	agingPrefix = approver.ConditionPrefix + "Certificates"
	// requestsPage and nodesPage are how many are held at a time. A Node lists its images, so it is much larger than a request.
	requestsPage, nodesPage = 500, 50
	// parallelCalls is how many kubelets are called at a time.
	parallelCalls = 8
)

// aging knows what waits for a decision and what is close to its end, as of the last time that it looked.
//
// Of requests it knows those that are in the cluster. Of certificates it knows those that kubelets serve with, because they show them.
// The ones by which nodes are clients nobody shows: only the requests for them tell, and the cluster deletes those after an hour.
type aging struct {
	live   client.Reader
	call   func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
	limits approver.AgeLimits
	// requestsEvery and kubeletsEvery are how often it looks; the latter is 0 for never.
	requestsEvery, kubeletsEvery time.Duration
	now                          func() time.Time
	// wake has the controller look at what was found; the others have this look as soon as the cluster is concerned and at rest.
	wake, beginRequests, beginKubelets chan struct{}
	concerned                          atomic.Bool
	// begun tells that the first look was asked for, since this cluster is concerned.
	begun bool
	// reporter tells about this, beside what another one tells about the patch.
	reporter *status.Reporter

	mu sync.Mutex
	// requests and certificates are what was seen last of each.
	requests, certificates approver.Aging
}

// setUp adds it to the manager, and its condition to those that the reporter of the patch shows.
func (a *aging) setUp(mgr ctrl.Manager, env manager.Environment, ofPatch *status.Reporter) error {
	a.reporter = env.Reporter(mgr, approver.Name, agingPrefix, "certificates")
	a.reporter.Metrics = nil // it has its own
	if !env.Options.DryRun {
		shown := &kept{}
		a.reporter.Sink, ofPatch.Sink = shown, beside{ofPatch.Sink, shown}
	}
	if err := registerMetrics(metrics.Registry); err != nil {
		return err
	}
	measured.Store(a)
	if err := mgr.Add(a); err != nil {
		return fmt.Errorf("adding the look at certificates: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*aging) NeedLeaderElection() bool { return true }

// Start looks until the context ends, whenever this cluster is concerned. Kubelets that hang keep nobody from seeing requests.
func (a *aging) Start(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { a.lookEvery(ctx, a.requestsEvery, a.beginRequests, a.lookAtRequests) })
	if a.kubeletsEvery > 0 {
		both.Go(func() { a.lookEvery(ctx, a.kubeletsEvery, a.beginKubelets, a.lookAtKubelets) })
	}
	both.Wait()
	return nil
}

func (a *aging) lookEvery(ctx context.Context, every time.Duration, begin <-chan struct{}, do func(context.Context) error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-begin:
		case <-ticker.C:
		}
		a.look(ctx, do)
	}
}

func (a *aging) look(ctx context.Context, do func(context.Context) error) {
	if !a.concerned.Load() {
		return
	}
	if err := do(ctx); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Looking at certificates failed; what was known before still counts")
	}
	ring(a.wake)
}

// ring never waits: who was rung for already will look.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// lookAtRequests reads all requests of nodes, however many there are.
func (a *aging) lookAtRequests(ctx context.Context) error {
	var seen approver.Aging
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
			var page certificatesv1.CertificateSigningRequestList
			err := a.live.List(ctx, &page, client.MatchingFields{"spec.signerName": signer}, client.Limit(requestsPage), client.Continue(at))
			for i := range page.Items {
				if s := page.Items[i].Status; len(s.Conditions) == 0 && len(s.Certificate) == 0 {
					seen.SawPending(page.Items[i].CreationTimestamp.Time)
				}
			}
			return page.Continue, err
		})
		if err != nil {
			return fmt.Errorf("reading the requests for %s: %w", signer, err)
		}
	}
	a.keep(&a.requests, seen)
	return nil
}

// lookAtKubelets calls the kubelet of every node. What does not answer is told by the node's own condition.
func (a *aging) lookAtKubelets(ctx context.Context) error {
	var mu sync.Mutex
	seen := approver.Aging{Limits: a.limits}
	see := func(leaf *x509.Certificate) {
		mu.Lock()
		defer mu.Unlock()
		seen.SawCertificate(leaf.NotBefore, leaf.NotAfter)
	}
	err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
		var page corev1.NodeList
		if err := a.live.List(ctx, &page, client.Limit(nodesPage), client.Continue(at)); err != nil {
			return "", err
		}
		a.callAll(ctx, page.Items, see)
		return page.Continue, ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("reading the nodes: %w", err)
	}
	a.keep(&a.certificates, seen)
	return nil
}

func (a *aging) callAll(ctx context.Context, nodes []corev1.Node, see func(*x509.Certificate)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	free := make(chan struct{}, parallelCalls)
	for i := range nodes {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			chain, err := a.call(ctx, &nodes[i])
			if err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("A kubelet does not show its certificate", "node", nodes[i].Name, "cause", err.Error())
				return
			}
			see(chain[0])
		})
	}
}

// known is all that was seen, in one.
func (a *aging) known() approver.Aging {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.certificates
	all.Limits, all.Pending, all.Oldest = a.limits, a.requests.Pending, a.requests.Oldest
	return all
}

// report tells what there is to tell, and returns when to tell again. A cluster that is not concerned costs no look, and one where the patch is on its way
// none at once: requests wait for minutes, and lists would be in the way of what everything on a node does then.
func (a *aging) report(ctx context.Context, operator *unstructured.Unstructured, of patch.State) (time.Duration, error) {
	concerned := concerned(of)
	a.concerned.Store(concerned)
	switch {
	case !concerned:
		a.begun = false
		a.forget()
	case !a.begun && of != patch.Progressing:
		a.begun = true
		ring(a.beginRequests)
		ring(a.beginKubelets)
	}
	// Nothing to tell is no event when it begins.
	result := patch.Result{State: patch.NotNeeded, Reason: patch.ReasonAsExpected,
		Message: "No request of a node waits too long, and no certificate that a kubelet serves with is close to its end"}
	if said := a.known().Observe(a.now()); said != nil {
		result = *said
	}
	return a.reporter.Report(ctx, operator, result)
}

// keep stores what was seen, unless it was seen of a cluster that is not concerned any more: forget has been there.
func (a *aging) keep(what *approver.Aging, seen approver.Aging) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.concerned.Load() {
		*what = seen
	}
}

func (a *aging) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests, a.certificates = approver.Aging{}, approver.Aging{}
}

// beside shows one more condition in the same write: whoever applies conditions twice under one name takes the first ones off.
type beside struct {
	status.Sink
	more *kept
}

// Show implements status.Sink.
func (b beside) Show(ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	return b.Sink.Show(ctx, target, append(conditions, b.more.conditions...))
}

// kept keeps of the conditions the one that says whether something is wrong.
type kept struct {
	conditions []operatorv1.OperatorCondition
}

// Show implements status.Sink.
func (k *kept) Show(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	k.conditions = nil
	for _, c := range conditions {
		if c.Type == patch.FailingCondition(agingPrefix) {
			k.conditions = append(k.conditions, c)
		}
	}
	return 0, nil
}
