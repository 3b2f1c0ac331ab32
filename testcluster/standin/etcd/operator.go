// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

var guardLabels = map[string]string{"app": "guard"}

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	inEtcd := standin.In(etcdguard.Namespace)
	return standin.Operator{
		Name: "etcd-operator",
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.Etcd{}: standin.Singleton(),
			&corev1.Pod{}: inEtcd, &policyv1.PodDisruptionBudget{}: inEtcd,
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	guards := ctrl.NewControllerManagedBy(mgr).Named("guards").
		Watches(&corev1.Node{}, standin.Only()).Watches(&corev1.Pod{}, standin.Only()).Watches(&policyv1.PodDisruptionBudget{}, standin.Only()).
		WithOptions(standin.Retry())
	if o.Stock {
		return guards.Complete(standin.Reconcile((&stockGuards{client: mgr.GetClient(), direct: mgr.GetAPIReader()}).reconcile))
	}
	r := &reconciler{client: mgr.GetClient(), etcd: etcd{strings.Split(o.Endpoints, ",")}, every: o.MembersInterval}
	return guards.
		// A change of its own status is not a reason to reconcile.
		Watches(&operatorv1.Etcd{}, standin.Only(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Complete(standin.Reconcile(r.reconcile))
}

// reconciler decides by the vendored module: about the guards with their budget, and about the members of etcd.
type reconciler struct {
	client   client.Client
	topology standin.Topology
	etcd     etcd
	// every is the time between readings of the members, which send no events.
	every time.Duration
}

func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	live, err := standin.Get(ctx, r.client, "", etcdguard.OperatorName, &operatorv1.Etcd{})
	if err != nil || live == nil || !standin.Managed(ctx, live.Spec.ManagementState) {
		return r.every, err
	}
	cluster, err := r.topology.Read(ctx, r.client)
	if err != nil || cluster == nil {
		return r.every, err
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	all, conditions := r.reconcileMembers(ctx, *cluster, live.Spec.UnsupportedConfigOverrides.Raw, memberNodes(*cluster, nodes.Items))
	state, err := r.reconcileGuards(ctx, *cluster, nodes.Items, all)
	if standin.OnlyStale(err) {
		return 0, err
	}
	changed := live.DeepCopy()
	changed.Status.Conditions = standin.Merge(changed.Status.Conditions, append(conditions, guardConditions(state, err)...)...)
	return r.every, errors.Join(err, standin.UpdateStatus(ctx, r.client, live, changed))
}

// memberNodes returns the nodes that have a member of etcd, or are to have one.
func memberNodes(cluster topology.Cluster, nodes []corev1.Node) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node corev1.Node) bool {
		_, master := node.Labels[etcdguard.MasterRole]
		_, arbiter := node.Labels[etcdguard.ArbiterRole]
		return !master && (!arbiter || cluster.ControlPlane.Mode != configv1.HighlyAvailableArbiterMode)
	})
}
