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
	return standin.Operator{
		Name:  "machine-config-operator",
		Kinds: []func(*runtime.Scheme) error{mcfgv1.Install},
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.MachineConfiguration{}: standin.Singleton(),
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	r := &reconciler{client: mgr.GetClient(), direct: mgr.GetAPIReader(), clientset: clientset, stock: o.Stock, drains: map[types.UID]*drain{}}
	return ctrl.NewControllerManagedBy(mgr).Named("nodes").
		// A change of its own status is not a reason to reconcile.
		For(&operatorv1.MachineConfiguration{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only()).
		Watches(&mcfgv1.MachineConfigPool{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(r.reconcile))
}

// reconciler annotates nodes and processes their requests.
type reconciler struct {
	// direct reads without the cache.
	client    client.Client
	direct    client.Reader
	clientset kubernetes.Interface
	topology  standin.Topology
	stock     bool
	// drains are those in progress, by the node's UID.
	drains map[types.UID]*drain
}

// managed returns the MachineConfiguration if it exists and is managed, else nil.
func (r *reconciler) managed(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
	operator, err := standin.Get(ctx, r.client, "", machineconfig.OperatorName, &operatorv1.MachineConfiguration{})
	if operator == nil || err != nil || !standin.Managed(ctx, operator.Spec.ManagementState) {
		return nil, err
	}
	return operator, nil
}

// state is what the decisions need of the cluster.
type state struct {
	cluster topology.Cluster
	nodes   []corev1.Node
	pools   []*mcfgv1.MachineConfigPool
}

// read returns nil if no topology was ever read.
func (r *reconciler) read(ctx context.Context, nodes client.Reader) (*state, error) {
	cluster, err := r.topology.Read(ctx, r.client)
	if err != nil || cluster == nil {
		return nil, err
	}
	var list corev1.NodeList
	var pools mcfgv1.MachineConfigPoolList
	if err := errors.Join(nodes.List(ctx, &list), r.client.List(ctx, &pools)); err != nil {
		return nil, fmt.Errorf("listing nodes and pools: %w", err)
	}
	s := &state{cluster: *cluster, nodes: list.Items}
	// The cache lists in a random order, and the text of a condition must not depend on that.
	slices.SortFunc(s.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range pools.Items {
		s.pools = append(s.pools, &pools.Items[i])
	}
	return s, nil
}

// annotate writes an annotation that differs, and changes the node in memory.
func (r *reconciler) annotate(ctx context.Context, node *corev1.Node, key, value string) error {
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
