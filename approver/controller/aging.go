// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/approver/kubelet"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/pages"
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/topology"
)

const (
	agingPrefix             = decision.ConditionPrefix + "Certificates"
	requestsPage, nodesPage = 500, 50 // a Node lists its images, so it is larger
	parallelCalls           = 8
)

type aging struct {
	live                         client.Reader
	call                         func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
	limits                       decision.AgeLimits
	requestsEvery, kubeletsEvery time.Duration
	reporter                     *status.Reporter

	mu                     sync.Mutex
	stop                   context.CancelFunc // stops the reads; nil where the patch is not needed
	requests, certificates decision.Aging
}

func (m *Module) aging(env controller.Environment) *aging {
	return &aging{
		live: env.Live, call: (&kubelet.Dialer{}).ServingCertificate, limits: m.limits, requestsEvery: m.requestsEvery, kubeletsEvery: m.kubeletsEvery,
	}
}

// wrap returns a ReconcileFunc that also reports.
func (a *aging) wrap(reconcile controller.ReconcileFunc) controller.ReconcileFunc {
	return func(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
		operator, result, err := reconcile(ctx, cluster)
		if err != nil {
			return operator, result, err
		}
		if a.enable(ctx, result.State) {
			result.After = controller.MinRequeueAfter(result.After, a.requestsEvery)
		}
		report := a.current().Observe(time.Now())
		if report == nil { // NotNeeded sends no event at the start
			report = &patch.Result{State: patch.NotNeeded, Reason: patch.ReasonAsExpected,
				Message: "No certificate request of a node is pending for too long, and no serving certificate ends soon"}
		}
		again, err := a.reporter.Report(ctx, operator, *report)
		result.After = controller.MinRequeueAfter(result.After, again)
		return operator, result, err
	}
}

// enable starts or stops the reads, which run in the background, and reports whether a patch in that state is wanted.
func (a *aging) enable(ctx context.Context, state patch.State) bool {
	wanted := state != patch.NotNeeded && state != patch.OptedOut && state != patch.Waiting
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case wanted && a.stop == nil:
		ctx, a.stop = context.WithCancel(ctx) // outlives this reconciliation
		go wait.UntilWithContext(ctx, func(ctx context.Context) { a.refresh(ctx, &a.requests, a.readRequests) }, a.requestsEvery)
		if a.kubeletsEvery > 0 {
			go wait.UntilWithContext(ctx, func(ctx context.Context) { a.refresh(ctx, &a.certificates, a.callKubelets) }, a.kubeletsEvery)
		}
	case !wanted && a.stop != nil:
		a.stop()
		a.stop, a.requests, a.certificates = nil, decision.Aging{}, decision.Aging{}
	}
	a.setMetrics()
	return wanted
}

// refresh keeps the last result after an error.
func (a *aging) refresh(ctx context.Context, old *decision.Aging, read func(context.Context) (decision.Aging, error)) {
	found, err := read(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		logr.FromContextOrDiscard(ctx).Error(err, "Reading requests or certificates failed, keeping the last result")
	default:
		*old = found
		a.setMetrics()
	}
}

func (a *aging) current() decision.Aging {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.certificates
	all.Limits, all.Pending, all.Oldest = a.limits, a.requests.Pending, a.requests.Oldest
	return all
}

func (a *aging) readRequests(ctx context.Context) (found decision.Aging, err error) {
	for _, signer := range requests.Signers {
		err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
			var page certificatesv1.CertificateSigningRequestList
			err := a.live.List(ctx, &page, client.MatchingFields{"spec.signerName": signer}, client.Limit(requestsPage), client.Continue(at))
			for i := range page.Items {
				if !requests.Decided(&page.Items[i]) {
					found.AddPending(page.Items[i].CreationTimestamp.Time)
				}
			}
			return page.Continue, err
		})
		if err != nil {
			return found, fmt.Errorf("reading the requests for %s: %w", signer, err)
		}
	}
	return found, nil
}

// callKubelets ignores kubelets that do not answer: their nodes are not ready.
func (a *aging) callKubelets(ctx context.Context) (decision.Aging, error) {
	var mu sync.Mutex
	found := decision.Aging{Limits: a.limits}
	err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
		var page corev1.NodeList
		if err := a.live.List(ctx, &page, client.Limit(nodesPage), client.Continue(at)); err != nil {
			return "", err
		}
		workqueue.ParallelizeUntil(ctx, parallelCalls, len(page.Items), func(i int) {
			chain, err := a.call(ctx, &page.Items[i])
			if err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("Kubelet presented no certificate", "node", page.Items[i].Name, "error", err.Error())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found.AddCertificate(chain[0].NotBefore, chain[0].NotAfter)
		})
		return page.Continue, ctx.Err()
	})
	if err != nil {
		return found, fmt.Errorf("reading the nodes: %w", err)
	}
	return found, nil
}

// combinedSink publishes the Failing condition about certificates with those of the patch: another apply by the same
// field owner would remove them.
type combinedSink struct {
	status.Sink
	certificates []operatorv1.OperatorCondition
}

// Publish implements status.Sink.
func (c *combinedSink) Publish(
	ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition,
) (time.Duration, error) {
	failing := func(c operatorv1.OperatorCondition) bool { return c.Type == patch.FailingCondition(agingPrefix) }
	if i := slices.IndexFunc(conditions, failing); i >= 0 {
		c.certificates = conditions[i : i+1]
		return 0, nil
	}
	return c.Sink.Publish(ctx, target, append(conditions, c.certificates...))
}

var (
	pendingRequests = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sno_approver_pending_requests", Help: "Number of undecided certificate signing requests of nodes.",
	})
	oldestRequestAge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sno_approver_oldest_pending_request_age_seconds",
		Help: "Age of the oldest undecided certificate signing request of a node; 0 without one.",
	})
	firstEnd = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sno_approver_first_serving_certificate_end_timestamp_seconds",
		Help: "Unix time at which the first serving certificate of a kubelet expires; 0 when none was read.",
	})
	registerMetrics = sync.OnceFunc(func() { metrics.Registry.MustRegister(pendingRequests, oldestRequestAge, firstEnd) })
)

func (a *aging) setMetrics() {
	pendingRequests.Set(float64(a.requests.Pending))
	oldestRequestAge.Set(a.requests.OldestAge(time.Now()).Seconds())
	end := int64(0)
	if a.certificates.Certificates > 0 {
		end = a.certificates.FirstEnd.Unix()
	}
	firstEnd.Set(float64(end))
}
