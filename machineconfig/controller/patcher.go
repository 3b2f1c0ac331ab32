package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// patcher carries out decisions.
type patcher struct {
	// reader is the cache, live the API server itself, metadata the cache that has of nodes nothing but metadata.
	reader, live, metadata client.Reader
	// once says that nothing goes on after the look: nodes are not answered, and what would be settled first is done at once.
	once bool
	// settings are the flags.
	settings machineconfig.Inputs

	nodes   *nodes
	drains  *drains
	applier *apply.Applier

	topology manager.LastTopology
	// garbled is what was last complained about on each node, so that it is said once.
	garbled map[string]string
	// notOurs are the nodes of which is known that their topology annotation, which is not wanted, is not ours either.
	notOurs map[types.UID]bool
	// settling is a change that restarts the node, and since when it is wanted.
	settling settling
	clock    clock.PassiveClock
}

// found is what one look reads from the caches: the inputs of decisions, of nodes only metadata, and the objects that are written, as
// they were read; nil where there is none.
type found struct {
	inputs                  machineconfig.Inputs
	operator, machineConfig *unstructured.Unstructured
	kubeletConfig           *unstructured.Unstructured
	// stock tells that the stock controller is at work.
	stock bool
}

// look is what manager.Controller calls. It is never run concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	f, err := p.gather(ctx)
	if err != nil {
		return nil, patch.Result{}, err
	}
	if unknown := patch.TopologyKnown(f.inputs.Cluster); unknown != nil {
		return f.operator, *unknown, nil
	}
	var said []patch.Result
	if f.stock {
		p.drains.settle(ctx, nil)
		said = p.annotate(ctx, f)
	} else {
		said = p.answer(ctx, f)
	}
	waits, err := machineconfig.Maintenance(pointers(f.inputs.Pools), pointers(f.inputs.Nodes))
	if err != nil {
		said = append(said, unclear(err))
	}
	if result := paused(waits); result != nil {
		said = append(said, *result)
	}
	if f.stock {
		said = append(said, p.shutdown(ctx, f))
	}
	return f.operator, summary(said), nil
}

// gather reads what is cached.
func (p *patcher) gather(ctx context.Context) (f found, err error) {
	f.inputs = p.settings
	in := &f.inputs
	if in.Cluster, err = p.topology.Read(ctx, p.reader); err != nil {
		return f, err
	}
	if f.operator, in.MachineConfiguration, err = manager.Read[operatorv1.MachineConfiguration](ctx, p.reader, operatorObject); err != nil {
		return f, err
	}
	stock, _, err := manager.Read[unstructured.Unstructured](ctx, p.reader, controllerConfigObject)
	if err != nil {
		return f, err
	}
	f.stock = stock != nil
	if f.machineConfig, in.MachineConfig, err = manager.Read[mcfgv1.MachineConfig](ctx, p.reader, machineConfigObject); err != nil {
		return f, err
	}
	if _, in.Pools, err = list[mcfgv1.MachineConfigPool](ctx, p.reader, poolObjects); err != nil {
		return f, err
	}
	var live []unstructured.Unstructured
	if live, in.KubeletConfigs, err = list[mcfgv1.KubeletConfig](ctx, p.reader, kubeletConfigObjects); err != nil {
		return f, err
	}
	if i := slices.IndexFunc(live, func(u unstructured.Unstructured) bool { return u.GetName() == machineconfig.ShutdownName }); i >= 0 {
		f.kubeletConfig = &live[i]
	}
	in.Nodes, err = p.listed(ctx)
	return f, err
}

// list reads all objects of a kind, as they are and decoded, in the order of their names.
func list[T any](ctx context.Context, from client.Reader, o manager.Object) ([]unstructured.Unstructured, []T, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
	if err := from.List(ctx, all); err != nil {
		return nil, nil, fmt.Errorf("reading every %s: %w", o.Kind, err)
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	typed := make([]T, len(all.Items))
	for i := range all.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, &typed[i]); err != nil {
			return nil, nil, fmt.Errorf("decoding %s %s: %w", o.Kind, all.Items[i].GetName(), err)
		}
	}
	return all.Items, typed, nil
}

// listed is every node, with nothing but its metadata, in the order of their names.
func (p *patcher) listed(ctx context.Context) ([]corev1.Node, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(nodeObjects.GroupVersion().WithKind(nodeObjects.Kind + "List"))
	if err := p.metadata.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading every node: %w", err)
	}
	nodes := make([]corev1.Node, len(all.Items))
	for i, item := range all.Items {
		nodes[i].ObjectMeta = item.ObjectMeta
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// summary is the worst of the results, with the earliest time at which any of them wants another look. What is not needed is only worth
// saying when nothing else is.
func summary(said []patch.Result) patch.Result {
	needed := slices.DeleteFunc(slices.Clone(said), func(r patch.Result) bool { return r.State == patch.NotNeeded })
	if len(needed) == 0 {
		needed = said
	}
	worst := patch.Worst(needed...)
	for _, result := range said {
		if result.After > 0 && (worst.After == 0 || result.After < worst.After) {
			worst.After = result.After
		}
		if worst.Err == nil {
			worst.Err = result.Err
		}
	}
	return worst
}
