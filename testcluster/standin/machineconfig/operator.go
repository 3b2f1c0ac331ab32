// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	operator := standin.Operator{
		Name:     "machine-config-operator",
		Kinds:    []func(*runtime.Scheme) error{mcfgv1.Install},
		Requires: []client.Object{&configv1.Infrastructure{}, &operatorv1.MachineConfiguration{}, &mcfgv1.MachineConfigPool{}},
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.MachineConfiguration{}: standin.Singleton(),
			&mcfgv1.MachineConfig{}: standin.Named(shutdownConfig),
		},
		SetUp: o.setUp,
	}
	if !o.Stock {
		operator.Requires = append(operator.Requires, &mcfgv1.MachineConfig{})
	}
	return operator, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	rules := vendoredRules(o.DrainPolicy)
	if o.Stock {
		rules = stockRules()
	}
	source := reader{client: mgr.GetClient(), direct: mgr.GetAPIReader()}
	nodes := &nodeReconciler{reader: source, clientset: clientset, rules: rules, drains: map[types.UID]*drain{}}
	// A change of its own status is not a reason to reconcile.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).Named("nodes").
		For(&operatorv1.MachineConfiguration{}, changed).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only()).
		Watches(&mcfgv1.MachineConfigPool{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(nodes.reconcile))
	if err != nil {
		return fmt.Errorf("building the controller of the nodes: %w", err)
	}
	if o.Stock {
		return nil // today's operator sets no grace periods (U-MCO-8)
	}
	noHeartbeat := predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{})
	shutdown := &shutdownReconciler{reader: source, settle: o.ShutdownSettle}
	return ctrl.NewControllerManagedBy(mgr).Named("shutdown").
		For(&operatorv1.MachineConfiguration{}, changed).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only(), builder.WithPredicates(noHeartbeat)).
		Watches(&mcfgv1.MachineConfig{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(shutdown.reconcile))
}

type reader struct {
	// direct reads without the cache.
	client   client.Client
	direct   client.Reader
	topology standin.Topology
}

// managed returns the MachineConfiguration if it exists and is managed, else nil.
func (r *reader) managed(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
	operator, err := standin.Get(ctx, r.client, "", machineconfig.OperatorName, &operatorv1.MachineConfiguration{})
	if operator == nil || err != nil || !standin.Managed(ctx, operator.Spec.ManagementState) {
		return nil, err
	}
	return operator, nil
}

// state is what the decisions need of the cluster.
type state struct {
	// cluster is the topology, and reported the value of the control plane's, which may be empty.
	cluster  topology.Cluster
	reported configv1.TopologyMode
	nodes    []corev1.Node
	pools    []*mcfgv1.MachineConfigPool
}

func (s state) nodePointers() []*corev1.Node {
	nodes := make([]*corev1.Node, len(s.nodes))
	for i := range s.nodes {
		nodes[i] = &s.nodes[i]
	}
	return nodes
}

// read returns nil if no topology was ever read.
func (r *reader) read(ctx context.Context, nodes client.Reader) (*state, error) {
	cluster, err := r.topology.Read(ctx, r.client)
	if err != nil || cluster == nil {
		return nil, err
	}
	s := &state{cluster: *cluster, reported: cluster.ControlPlane.Reported}
	var list corev1.NodeList
	var pools mcfgv1.MachineConfigPoolList
	if err := errors.Join(nodes.List(ctx, &list), r.client.List(ctx, &pools)); err != nil {
		return nil, fmt.Errorf("listing nodes and pools: %w", err)
	}
	s.nodes = list.Items
	// The cache lists in a random order, and whose turn it is must not depend on that.
	slices.SortFunc(s.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range pools.Items {
		s.pools = append(s.pools, &pools.Items[i])
	}
	return s, nil
}

// annotate writes an annotation that differs, and changes the node in memory.
func (r *reader) annotate(ctx context.Context, node *corev1.Node, key, value string) error {
	if node.Annotations[key] == value {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Annotations = standin.With(node.Annotations, map[string]string{key: value})
	if err := client.IgnoreNotFound(r.client.Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("writing annotation %s of node %s: %w", key, node.Name, err)
	}
	return nil
}

// publish merges conditions into the status.
func (r *reader) publish(ctx context.Context, live *operatorv1.MachineConfiguration, conditions []metav1.Condition) error {
	changed := live.DeepCopy()
	different := false
	for _, c := range conditions {
		different = meta.SetStatusCondition(&changed.Status.Conditions, c) || different
	}
	if !different {
		return nil
	}
	// The typed object would set more fields.
	if err := r.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the status of MachineConfiguration %s: %w", live.Name, err)
	}
	return nil
}

// rules are the decisions that depend on the topology.
type rules struct {
	// turns returns the configurations that nodes may take now. nil: the operator assigns none.
	turns func(state) (map[string]string, error)
	// mayStart returns which of the pending drains may start, and why the others wait.
	mayStart func(s state, pending, draining []string) (start []string, waiting map[string]string, err error)
	// required reports whether a node is drained; not required is acknowledged at once. It reads the workloads with load
	// if it needs them.
	required func(s state, node string, draining []string, load func(*machineconfig.Inputs) error) (machineconfig.DrainDecision, error)
	// keepsDecision means that a drain that has started is required until its end.
	keepsDecision bool
	// conditions means that conditions are published.
	conditions bool
}
