// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// Violated guarantees of operands.
var (
	// ErrTwoWriters is returned when a node had two pods of an operand with OneWriter.
	ErrTwoWriters = errors.New("two writers on one node")
	// ErrOutage is returned when fewer pods than MinAvailable were available.
	ErrOutage = errors.New("too few pods available")
)

// Watcher observes every change of operands and of their pods.
type Watcher struct {
	mu       sync.Mutex
	operands []scenario.Operand
	nodes    map[types.UID]string // of the pods of one-writer operands, by pod
	marked   map[string]int64     // generation of each operand at Mark
	fewest   map[string]int32     // available pods of later generations, by operand
	broken   error
}

// Watch watches operands until ctx ends. It returns when the watches are synchronised.
func Watch(ctx context.Context, c *embedded.Cluster, operands []scenario.Operand) (*Watcher, error) {
	namespaces := map[string]cache.Config{}
	for _, o := range operands {
		namespaces[o.Namespace] = cache.Config{}
	}
	watching, err := cache.New(c.RESTConfig(), cache.Options{Scheme: c.Client().Scheme(), DefaultNamespaces: namespaces})
	if err != nil {
		return nil, fmt.Errorf("watch the operands: %w", err)
	}
	w := &Watcher{operands: operands, nodes: map[types.UID]string{}}
	for object, handler := range map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&corev1.Pod{}: {
			AddFunc: w.pod, UpdateFunc: func(_, after any) { w.pod(after) }, DeleteFunc: w.podGone,
		},
		&appsv1.Deployment{}: {
			UpdateFunc: func(_, after any) { w.deployment(after) },
		},
	} {
		informer, err := watching.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the operands: %w", err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch the operands: %w", err)
		}
	}
	go func() {
		// It ends with ctx. If it fails to start, it never synchronises.
		_ = watching.Start(ctx)
	}()
	if !watching.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the operands: %w", context.Cause(ctx))
	}
	return w, nil
}

func (w *Watcher) of(pod *corev1.Pod) (scenario.Operand, bool) {
	for _, o := range w.operands {
		if o.Namespace == pod.Namespace && strings.HasPrefix(pod.Name, o.Name+"-") {
			return o, true
		}
	}
	return scenario.Operand{}, false
}

func (w *Watcher) pod(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	o, ok := w.of(pod)
	if !ok || !o.OneWriter {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := o.String() + " on " + pod.Spec.NodeName
	for uid, other := range w.nodes {
		// A terminating pod still writes.
		if uid != pod.UID && other == key && w.broken == nil {
			w.broken = fmt.Errorf("%w: %s", ErrTwoWriters, key)
		}
	}
	w.nodes[pod.UID] = key
}

func (w *Watcher) podGone(object any) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, pod.UID)
}

func (w *Watcher) deployment(object any) {
	live, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Events from before the mark are of the old generation.
	if marked, known := w.marked[live.Name]; known && live.Generation > marked {
		w.fewest[live.Name] = min(w.fewest[live.Name], live.Status.AvailableReplicas)
	}
}

// Mark begins the period of rollouts that Available checks. All operands must be stable.
func (w *Watcher) Mark(ctx context.Context, kube client.Client) error {
	marked, fewest := map[string]int64{}, map[string]int32{}
	for _, o := range w.operands {
		live, err := Deployment(ctx, kube, o)
		if err != nil {
			return err
		}
		marked[o.Name], fewest[o.Name] = live.Generation, o.Replicas
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marked, w.fewest = marked, fewest
	return nil
}

// Available returns an ErrOutage unless every operand had MinAvailable pods available at every moment of the rollouts
// since Mark.
func (w *Watcher) Available() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, o := range w.operands {
		if w.fewest[o.Name] < o.MinAvailable {
			errs = append(errs, fmt.Errorf("%w: %s had %d, must have %d at every moment", ErrOutage, o, w.fewest[o.Name], o.MinAvailable))
		}
	}
	return errors.Join(errs...)
}

// TwoWriters returns an ErrTwoWriters if a node ever had two.
func (w *Watcher) TwoWriters() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}
