// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

const (
	namespacePrefix = "sno-conformance-"
	// parallelCopies can be high because copies mostly wait.
	parallelCopies = 8
)

// errStuck is a finding, not a failure of the run: nothing changes any more and the end is not reached.
var errStuck = errors.New("it does not end")

// workloadCopier copies Deployments into its own namespaces, where the cluster's scheduler and controllers run them.
// Equal copies run once.
type workloadCopier struct {
	config  *rest.Config
	kube    kubernetes.Interface
	program program
	id      string
	times   cluster.Times
	slots   chan struct{}

	pods        corelisters.PodLister
	deployments appslisters.DeploymentLister

	mu sync.Mutex
	// results run a copy once.
	results map[string]func() (*catalogue.CopyResult, error)
	// free are namespaces to reuse: creating and deleting one for each copy would take most of the time.
	free []string
	// unusable is why the image does not run; no further copy is tried then.
	unusable error
}

func newWorkloadCopier(ctx context.Context, target cluster.Target, kube kubernetes.Interface, id string, program program) (*workloadCopier, error) {
	w := &workloadCopier{
		config: target.Config, kube: kube, program: program, id: id, times: target.Times,
		slots: make(chan struct{}, parallelCopies), results: map[string]func() (*catalogue.CopyResult, error){},
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = cluster.RunLabel + "=" + w.id
	}))
	pods, deployments := factory.Core().V1().Pods(), factory.Apps().V1().Deployments()
	w.pods, w.deployments = pods.Lister(), deployments.Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w, ctx.Err()
}

// close deletes all namespaces of the run.
func (w *workloadCopier) close(ctx context.Context) error {
	var left []string
	err := wait.PollUntilContextCancel(ctx, w.times.Poll, true, func(ctx context.Context) (bool, error) {
		list, err := w.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: cluster.RunLabel + "=" + w.id})
		if err != nil {
			return false, err
		}
		left = left[:0]
		var errs []error
		for i := range list.Items {
			left = append(left, list.Items[i].Name)
			if list.Items[i].DeletionTimestamp == nil {
				errs = append(errs, deleteNamespace(ctx, w.kube, list.Items[i].Name))
			}
		}
		return len(left) == 0, errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("delete the namespaces of this run, %s: %w", strings.Join(left, ", "), err)
	}
	return nil
}

// deleteNamespace does not wait for the deletion, and is content with a namespace that is gone or being deleted.
func deleteNamespace(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	err := kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	return nil
}

func allStages() []catalogue.Stage {
	return []catalogue.Stage{catalogue.Rollout, catalogue.Eviction, catalogue.Deletion}
}

// runAll copies the given Deployments with pods in parallel.
func (w *workloadCopier) runAll(
	ctx context.Context, state *catalogue.State, names []types.NamespacedName, stages []catalogue.Stage,
) (map[types.NamespacedName]*catalogue.CopyResult, error) {
	results := make([]*catalogue.CopyResult, len(names))
	var group errgroup.Group // the copies of others go on after an error
	for i, name := range names {
		d := state.Deployment(name.Namespace, name.Name)
		if d == nil || catalogue.Replicas(d) == 0 {
			continue
		}
		group.Go(func() (err error) {
			results[i], err = w.run(ctx, d, state.Budgets, stages)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := map[types.NamespacedName]*catalogue.CopyResult{}
	for i, name := range names {
		if results[i] != nil {
			all[name] = results[i]
		}
	}
	return all, nil
}

// run copies a Deployment and its budgets, and performs the stages. An error is no finding about the copy.
func (w *workloadCopier) run(ctx context.Context, deployment *appsv1.Deployment, budgets []policyv1.PodDisruptionBudget, stages []catalogue.Stage) (*catalogue.CopyResult, error) {
	s := shapeOf(deployment, budgets, w.program, w.id)
	text, err := json.Marshal([]any{s.deployment, s.budgets})
	if err != nil {
		return nil, fmt.Errorf("encode the copy: %w", err)
	}
	full, key := fmt.Sprint(string(text), allStages()), fmt.Sprint(string(text), stages)
	w.mu.Lock()
	copied, begun := w.results[full] // it passes all stages
	if !begun {
		copied, begun = w.results[key]
	}
	if !begun {
		copied = sync.OnceValues(func() (*catalogue.CopyResult, error) { return w.runCopy(ctx, s, stages) })
		w.results[key] = copied
	}
	w.mu.Unlock()
	return copied()
}

func (w *workloadCopier) runCopy(ctx context.Context, s shape, stages []catalogue.Stage) (*catalogue.CopyResult, error) {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	unusable := w.unusable
	w.mu.Unlock()
	if unusable != nil {
		return nil, unusable
	}
	c, err := w.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer c.end(ctx)
	r := &catalogue.CopyResult{}
	for _, stage := range append([]catalogue.Stage{catalogue.Deployed}, stages...) {
		var err error
		switch stage {
		case catalogue.Deployed:
			err = c.deploy(ctx)
		case catalogue.Rollout:
			err = c.roll(ctx)
		case catalogue.Eviction:
			err = c.evict(ctx)
		case catalogue.Deletion:
			err = c.delete(ctx, r)
		}
		if errors.Is(err, errStuck) { // a finding about the copy
			r.Failed, r.Failure = stage, err.Error()
			return r, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}
