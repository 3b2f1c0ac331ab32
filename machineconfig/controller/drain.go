// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	kubectl "k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

const (
	evictionRetry    = 5 * time.Second  // the maximum after a refused eviction, as in kubectl
	podInterval      = time.Second      // how often terminating pods are read
	progressInterval = 30 * time.Second // between events
	firstBackoff     = 10 * time.Second // after a failed attempt; it doubles up to maxBackoff
	maxBackoff       = 5 * time.Minute
	podsPerPage      = 500
)

var triesTotal = promauto.With(crmetrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "sno_drain_tries_total", Help: "Attempts to drain a node, and requests for a drain that was not needed, by result.",
}, []string{"result"})

var (
	errTimeout = errors.New("the attempt exceeds its time limit")
	// errOwned is returned if another manager owns the acknowledgement.
	errOwned = errors.New("owned by another field manager")
)

// drain is a drain in progress.
type drain struct {
	nodeRequest
	started                  bool                // the request can be acknowledged, so events are emitted
	initial                  sets.Set[types.UID] // the pods when the node was cordoned; nil before
	next, deadline, progress time.Time           // when the next step is due, the attempt fails, an event is due
	backoff                  wait.Backoff
	evictErr, lastErr        error // of the last evictions, and of the last attempt
}

// step carries out the next step of a drain if it is due. It returns nil if the drain has ended.
func (p *patcher) step(ctx context.Context, r nodeRequest) *patch.Result {
	now := p.clock.Now()
	d := p.drains[r.uid]
	if d == nil {
		d = &drain{nodeRequest: r, backoff: wait.Backoff{Duration: min(firstBackoff, p.drainTimeout), Factor: 2, Steps: 10, Cap: maxBackoff}}
		p.drains[r.uid] = d
	}
	if now.Before(d.next) {
		return d.result(now)
	}
	if d.deadline.IsZero() {
		d.deadline = now.Add(p.drainTimeout)
	}
	ended, err := p.drainNode(ctx, d, now)
	if err == nil && ended == "" && !now.Before(d.deadline) {
		err = errors.Join(errTimeout, d.evictErr)
	}
	switch {
	case ctx.Err() != nil || (err == nil && ended == ""):
		return d.result(now)
	case err == nil:
		p.end(ctx, d, ended)
		return nil
	}
	logr.FromContextOrDiscard(ctx).Error(err, "Drain failed", "node", r.node, "request", r.request.String())
	triesTotal.WithLabelValues("failed").Inc()
	d.lastErr, d.deadline, d.next = err, time.Time{}, now.Add(d.backoff.Step())
	if d.started {
		p.event(ctx, r, corev1.EventTypeWarning, decision.ReasonDrainFailed, "Drain",
			fmt.Sprintf("The drain failed and is retried: %.500s", err)) // a note is limited to 1 kB
	}
	return d.result(now)
}

func (p *patcher) end(ctx context.Context, d *drain, result string) {
	logr.FromContextOrDiscard(ctx).Info("Drain ended", "node", d.node, "request", d.request.String(), "result", result)
	triesTotal.WithLabelValues(result).Inc()
	delete(p.drains, d.uid)
}

// dropDrains ends drains that are no longer required.
func (p *patcher) dropDrains(ctx context.Context, required []nodeRequest) {
	for _, d := range p.drains {
		if !slices.Contains(required, d.nodeRequest) {
			p.end(ctx, d, "stopped")
		}
	}
}

// drainNode cordons the node and evicts its pods, or acknowledges the request if none is left. ended is empty during
// the drain.
func (p *patcher) drainNode(ctx context.Context, d *drain, now time.Time) (ended string, err error) {
	node, err := p.pendingNode(ctx, d.nodeRequest)
	switch {
	case err != nil:
		return "", err
	case node == nil:
		return "stopped", nil
	}
	d.started = true
	if err := p.cordon(ctx, node, true); err != nil {
		return "", err
	}
	helper := p.helper(ctx)
	helper.AdditionalFilters = []kubectl.PodFilter{d.skipTolerating}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return "", fmt.Errorf("finding the pods of node %s: %w", node.Name, errors.Join(errs...))
	}
	pods := list.Pods()
	reason, note := "DrainProgress", "Pods that are left: %d"
	if d.initial == nil {
		reason, note = "DrainStarted", "The node is cordoned, and its pods are evicted: %d"
		d.initial = sets.New[types.UID]()
		for i := range pods {
			d.initial.Insert(pods[i].UID)
		}
	}
	if len(pods) == 0 {
		if err := p.acknowledge(ctx, d.nodeRequest); err != nil {
			return "", err
		}
		p.event(ctx, d.nodeRequest, corev1.EventTypeNormal, "Drained", "Drain", "The node is cordoned, and no pod is left to evict")
		return "done", nil
	}
	if now.After(d.progress) {
		p.event(ctx, d.nodeRequest, corev1.EventTypeNormal, reason, "Drain", fmt.Sprintf(note, len(pods)))
		d.progress = now.Add(progressInterval)
	}
	var pause time.Duration
	pause, d.evictErr = p.evict(helper, pods)
	d.next = now.Add(pause)
	return "", nil
}

// evict evicts pods in parallel and returns when to read them again. Errors do not fail the attempt, since two
// evictions under one budget can conflict.
func (p *patcher) evict(helper *kubectl.Helper, pods []corev1.Pod) (time.Duration, error) {
	errs := make([]error, len(pods))
	pause := podInterval
	var tasks sync.WaitGroup
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			pause = controller.RequeueDelay
			tasks.Go(func() { errs[i] = client.IgnoreNotFound(helper.EvictPod(pods[i], policyv1.SchemeGroupVersion)) })
		}
	}
	tasks.Wait()
	if err := errors.Join(errs...); err != nil {
		return min(evictionRetry, p.drainTimeout/10), err
	}
	return pause, nil
}

// skipTolerating skips new pods that tolerate the cordon: their replacements are placed on the node again, so the drain
// would never end.
func (d *drain) skipTolerating(pod corev1.Pod) kubectl.PodDeleteStatus {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if d.initial != nil && !d.initial.Has(pod.UID) && corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &cordon, true) {
		return kubectl.MakePodDeleteStatusSkip()
	}
	return kubectl.MakePodDeleteStatusOkay()
}

// helper has the settings of the stock controller.
func (p *patcher) helper(ctx context.Context) *kubectl.Helper {
	return &kubectl.Helper{
		Ctx: ctx, Client: p.kube, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		ChunkSize: podsPerPage, Out: io.Discard, ErrOut: io.Discard,
	}
}

// result is the state of a drain in progress, by its last failed attempt.
func (d *drain) result(now time.Time) *patch.Result {
	result := drainingResult
	switch {
	case d.lastErr == nil:
	case errors.Is(d.lastErr, errOwned):
		result = ownedResult
	case apierrors.IsForbidden(d.lastErr):
		result = failed(patch.ReasonForbidden, "Not permitted to drain a node, which takes "+nodeMessages.Resource+"; apply the controller's RBAC")
	case errors.Is(d.lastErr, errTimeout):
		result = failed(decision.ReasonDrainFailed, "A drain takes too long: a PodDisruptionBudget refuses evictions, or a pod does not terminate; "+
			"see the events of the node. The drain is retried")
	default:
		result = failed(patch.ReasonApplyFailed, "A node cannot be drained; the controller's log has the API server's answer. The drain is retried")
	}
	result.After = max(d.next.Sub(now), time.Millisecond)
	return &result
}

// cordonManager is the field manager of this module's cordons.
const cordonManager = "sno-machineconfig"

// stockManagers are field managers of acknowledgements of a machine-config operator, which does not run any more.
var stockManagers = []string{"machine-config-controller", "machine-config-operator"}

// pendingNode reads the node of a request; nil if it does not exist or has another request. It returns errOwned for a
// request that cannot be acknowledged.
func (p *patcher) pendingNode(ctx context.Context, r nodeRequest) (*corev1.Node, error) {
	node, err := p.kube.CoreV1().Nodes().Get(ctx, r.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", r.node, err)
	}
	request, err := machineconfig.Requested(node.Annotations)
	if err != nil || request == nil || *request != r.request || node.UID != r.uid {
		return nil, nil //nolint:nilerr // an invalid request is reported by the next reconciliation
	}
	if _, acknowledged := node.Annotations[machineconfig.LastAppliedDrainAnnotation]; !acknowledged || p.Options.ForceConflicts {
		return node, nil
	}
	path := fieldpath.MakePathOrDie("metadata", "annotations", machineconfig.LastAppliedDrainAnnotation)
	others, err := ownership.OthersAt(node, path, append([]string{decision.FieldOwner}, stockManagers...)...)
	switch {
	case err != nil:
		return nil, fmt.Errorf("managers of node %s: %w", node.Name, err)
	case len(others) > 0:
		p.applier.Recorder.RecordApply(machineconfig.Name, apply.Conflicted)
		p.applier.Recorder.RecordConflict(machineconfig.Name, others[0])
		return nil, ownedBy(r, others[0])
	}
	return node, nil
}

func ownedBy(r nodeRequest, manager string) error {
	return fmt.Errorf("%w: %s of node %s by %q", errOwned, machineconfig.LastAppliedDrainAnnotation, r.node, manager)
}

// complete completes an uncordon, or a drain that is not required. For the latter it removes only this module's cordon.
func (p *patcher) complete(ctx context.Context, r nodeRequest, why string) error {
	node, err := p.pendingNode(ctx, r)
	if node == nil || err != nil {
		return err
	}
	uncordon, reason, action, note := true, "Uncordoned", "Uncordon", "The node is uncordoned"
	if r.request.Verb == machineconfig.VerbDrain {
		reason, action, note = "DrainNotNeeded", "Drain", "Nothing is cordoned or evicted. "+why
		if uncordon, err = ownsCordon(node); err != nil {
			return err
		}
	}
	if uncordon {
		if err := p.cordon(ctx, node, false); err != nil {
			return err
		}
	}
	if err := p.acknowledge(ctx, r); err != nil {
		return err
	}
	if r.request.Verb == machineconfig.VerbDrain {
		triesTotal.WithLabelValues("not-needed").Inc()
	}
	p.event(ctx, r, corev1.EventTypeNormal, reason, action, note)
	return nil
}

func (p *patcher) cordon(ctx context.Context, node *corev1.Node, unschedulable bool) error {
	if err := kubectl.RunCordonOrUncordon(p.helper(ctx), node, unschedulable); err != nil {
		return fmt.Errorf("changing the cordon of node %s: %w", node.Name, err)
	}
	return nil
}

// acknowledge writes the request to LastAppliedDrainAnnotation. It overwrites only the value of a stock controller.
func (p *patcher) acknowledge(ctx context.Context, r nodeRequest) error {
	intent := corev1ac.Node(r.node).WithUID(r.uid).WithAnnotations(map[string]string{machineconfig.LastAppliedDrainAnnotation: r.request.String()})
	send := func(force bool) error {
		_, err := p.kube.CoreV1().Nodes().Apply(ctx, intent, metav1.ApplyOptions{FieldManager: decision.FieldOwner, Force: force})
		return err
	}
	err := send(p.Options.ForceConflicts)
	if conflicts := apply.ConflictsOf(err); len(conflicts) > 0 {
		if slices.ContainsFunc(conflicts, func(c apply.Conflict) bool { return !slices.Contains(stockManagers, c.Manager) }) {
			return ownedBy(r, conflicts[0].Manager)
		}
		err = send(true)
	}
	if err != nil {
		p.applier.Recorder.RecordApply(machineconfig.Name, apply.Failed)
		return fmt.Errorf("acknowledging the request of node %s: %w", r.node, err)
	}
	p.applier.Recorder.RecordApply(machineconfig.Name, apply.Applied)
	logr.FromContextOrDiscard(ctx).Info("Request completed", "node", r.node, "request", r.request.String())
	return nil
}

func (p *patcher) event(ctx context.Context, r nodeRequest, kind, reason, action, note string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node, UID: r.uid}}
	p.events.Eventf(node, nil, kind, reason, action, "%s", note)
	logr.FromContextOrDiscard(ctx).V(1).Info("Event", "node", r.node, "reason", reason, "note", note)
}

// ownsCordon reports whether this module has cordoned the node.
func ownsCordon(node *corev1.Node) (bool, error) {
	if !node.Spec.Unschedulable {
		return false, nil
	}
	managers, err := ownership.Managers(node, ".spec.unschedulable")
	if err != nil {
		return false, fmt.Errorf("managers of the cordon of node %s: %w", node.Name, err)
	}
	return slices.Contains(managers, cordonManager), nil
}
