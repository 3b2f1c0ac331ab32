package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	kubectl "k8s.io/kubectl/pkg/drain"

	"github.com/solonode/sno/machineconfig"
)

const (
	// evictAgain is the longest pause before an eviction is asked for again that a budget refused, as in kubectl.
	evictAgain = 5 * time.Second
	// lookAgain is the pause before pods are evicted that somebody made on the node while it was drained, or whose eviction met with an
	// error. It doubles every time, up to the pause of a refused one.
	lookAgain     = time.Second
	mostDoublings = 10
	// answerTimeout bounds the one request that answers.
	answerTimeout = 10 * time.Second
	// tellAgain is how often an event tells how far a drain is.
	tellAgain = 30 * time.Second
)

// errTimeout is returned by a try that took too long.
var errTimeout = errors.New("the time for one try is over")

// try is one try to drain a node.
type try struct {
	*nodes
	job job
	log logr.Logger
	// node is the node as it was read last; nil before the first time.
	node *corev1.Node
	// cause is why the last evictions did not succeed; nil when they did.
	cause error
	// told says that the beginning was told of.
	told bool
	// first are the pods that were there when the node was cordoned; nil before that.
	first map[types.UID]bool
}

// drain is one try to drain the node of the job. It returns nil when the node has its answer, or does not ask any more.
func (n *nodes) drain(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	began := time.Now()
	t := &try{nodes: n, job: j, log: logr.FromContextOrDiscard(ctx).WithValues("node", j.node, "request", j.request.String())}
	answered, err := t.run(ctx)
	switch {
	case answered:
		t.log.Info("Drained", "took", time.Since(began).String())
		n.tries.ended(resultDone)
		n.tell(ctx, t.node, corev1.EventTypeNormal, "Drained", "Drain", "The node is cordoned, and nothing is left on it to evict")
		return nil
	case err == nil, errors.Is(ctx.Err(), context.Canceled):
		t.log.Info("Drain stopped: the node is gone, asks for something else, or is not to be drained any more")
		n.tries.ended(resultStopped)
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", errTimeout, errors.Join(t.cause, err))
	}
	t.log.Error(err, "Drain failed")
	n.tries.ended(resultFailed)
	if t.node != nil {
		n.tell(ctx, t.node, corev1.EventTypeWarning, machineconfig.ReasonDrainFailed, "Drain", "The drain did not succeed and is tried again: "+shorten(err.Error()))
	}
	return err
}

// run evicts until a cordoned node has no pod left that can be evicted, and answers. A pod that the scheduler had sent there just before
// is found by looking again, and so is one whose eviction met with an error: two evictions under one budget can meet in the API server.
func (t *try) run(ctx context.Context) (answered bool, err error) {
	for round := 0; ; round++ {
		node, err := t.asking(ctx, t.job)
		if node == nil || err != nil {
			return false, err
		}
		t.node = node
		pods, err := t.evict(ctx)
		if err != nil {
			return false, err
		}
		if pods == 0 && ctx.Err() == nil {
			err := t.finish(ctx)
			return err == nil, err
		}
		pause := min(lookAgain<<min(round, mostDoublings), t.pause())
		if round == 0 && t.cause == nil {
			pause = 0 // mostly nothing is left
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// finish answers. Whoever sees the answer before we hear that it was written stops this try, because the node does not ask any more;
// that must not make it look as if it had not succeeded.
func (t *try) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	return t.answer(ctx, t.job)
}

// evict cordons the node, evicts what is on it and waits until that is gone. It tells how many pods there were: where there were some, it
// is to be looked again. What keeps evictions from success becomes the cause.
func (t *try) evict(ctx context.Context) (int, error) {
	helper := t.helper(ctx, t.log)
	helper.AdditionalFilters = []kubectl.PodFilter{t.cameBack}
	if err := kubectl.RunCordonOrUncordon(helper, t.node, true); err != nil {
		return 0, fmt.Errorf("cordoning node %s: %w", t.node.Name, err)
	}
	list, errs := helper.GetPodsForDeletion(t.node.Name)
	if len(errs) > 0 {
		return 0, fmt.Errorf("finding the pods of node %s: %w", t.node.Name, utilerrors.NewAggregate(errs))
	}
	pods := list.Pods()
	if t.first == nil {
		t.first = map[types.UID]bool{}
		for i := range pods {
			t.first[pods[i].UID] = true
		}
	}
	if len(pods) == 0 {
		return 0, nil
	}
	if !t.told {
		t.told = true
		t.log.Info("Draining", "pods", len(pods), "warnings", list.Warnings())
		t.tell(ctx, t.node, corev1.EventTypeNormal, "DrainStarted", "Drain", fmt.Sprintf("The node is cordoned, and its pods are evicted: %d", len(pods)))
	}
	defer t.progress(ctx, helper, len(pods))()
	if t.cause = helper.DeleteOrEvictPods(pods); t.cause != nil {
		t.log.V(1).Info("Evictions did not succeed", "cause", t.cause.Error())
	}
	return len(pods), nil
}

// cameBack leaves pods alone that came after the cordon because they tolerate it, as the successor of an evicted pod of such a Deployment does at
// once: who evicts those never ends. kubectl drain does not see them either, because it looks once.
func (t *try) cameBack(pod corev1.Pod) kubectl.PodDeleteStatus {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if t.first != nil && !t.first[pod.UID] && corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &cordon, true) {
		return kubectl.MakePodDeleteStatusSkip()
	}
	return kubectl.MakePodDeleteStatusOkay()
}

// progress tells now and then how far the evictions are, until the returned function is called.
func (t *try) progress(ctx context.Context, helper *kubectl.Helper, pods int) func() {
	var gone atomic.Int64
	helper.OnPodDeletionOrEvictionFinished = func(_ *corev1.Pod, _ bool, err error) {
		if err == nil {
			gone.Add(1)
		}
	}
	node, ended := t.node, make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(tellAgain):
				t.tell(ctx, node, corev1.EventTypeNormal, "DrainProgress", "Drain", fmt.Sprintf("%d of %d pods are gone", gone.Load(), pods))
			}
		}
	}()
	return func() { close(ended) }
}

// pause is how long is waited after a refused eviction.
func (n *nodes) pause() time.Duration { return min(evictAgain, n.timeout/10) }

// helper is set up like the stock controller's: pods of nobody and those with local data go too, and those of DaemonSets stay.
func (n *nodes) helper(ctx context.Context, log logr.Logger) *kubectl.Helper {
	out := lines{log.V(1)}
	return &kubectl.Helper{
		Ctx: ctx, Client: n.kube, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Timeout: n.timeout, EvictErrorRetryDelay: n.pause(), ChunkSize: podsAtOnce, Out: out, ErrOut: out,
	}
}

// lines logs what a library prints.
type lines struct{ log logr.Logger }

func (l lines) Write(p []byte) (int, error) {
	l.log.Info("kubectl drain", "says", string(p))
	return len(p), nil
}

// shorten fits a text into the note of an event, which holds a kilobyte.
func shorten(text string) string {
	const most = 500
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
