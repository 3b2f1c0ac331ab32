// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"net/url"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

var guardLabels = map[string]string{"app": "guard"}

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	for _, endpoint := range o.endpoints() {
		if u, err := url.Parse(endpoint); !o.Stock && (err != nil || u.Host == "") {
			return standin.Operator{}, fmt.Errorf("--etcd-endpoints: %q; want something like http://10.0.0.1:2379", endpoint)
		}
	}
	inEtcd := cache.ByObject{Namespaces: map[string]cache.Config{etcdguard.Namespace: {}}}
	operator := standin.Operator{
		Name:     "etcd-operator",
		Requires: []client.Object{&configv1.Infrastructure{}, &operatorv1.Etcd{}},
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.Etcd{}: standin.Singleton(),
			&corev1.Pod{}: inEtcd, &policyv1.PodDisruptionBudget{}: inEtcd,
		},
		SetUp: o.setUp,
	}
	if o.Stock {
		operator.SetUp = setUpStock
	}
	return operator, nil
}

func setUpStock(_ context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("guards").
		Watches(&corev1.Node{}, standin.Only()).Watches(&corev1.Pod{}, standin.Only()).Watches(&policyv1.PodDisruptionBudget{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile((&stockGuards{client: mgr.GetClient(), direct: mgr.GetAPIReader()}).reconcile))
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	members := &memberReconciler{
		reader: reader{client: mgr.GetClient()}, etcdClient: &etcd{endpoints: o.endpoints()}, every: o.MembersInterval,
		changed: make(chan event.TypedGenericEvent[client.Object], 1),
	}
	members.voters.Store(-1)
	// A change of its own status is not a reason to reconcile.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	noHeartbeat := predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	err := ctrl.NewControllerManagedBy(mgr).Named("members").
		For(&operatorv1.Etcd{}, changed).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only(), builder.WithPredicates(noHeartbeat)).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(members.reconcile))
	if err != nil {
		return fmt.Errorf("building the controller of the members: %w", err)
	}
	guards := &guardReconciler{reader: reader{client: mgr.GetClient()}, voters: func() int { return int(members.voters.Load()) }}
	return ctrl.NewControllerManagedBy(mgr).Named("guards").
		For(&operatorv1.Etcd{}, changed).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only()).
		Watches(&corev1.Pod{}, standin.Only()).
		Watches(&policyv1.PodDisruptionBudget{}, standin.Only()).
		WatchesRawSource(source.Channel(members.changed, standin.Only())).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(guards.reconcile))
}

type reader struct {
	client   client.Client
	topology standin.Topology
}

// read returns the Etcd and the topology, or nil if there is none, or none to manage.
func (r *reader) read(ctx context.Context) (*operatorv1.Etcd, *topology.Cluster, error) {
	etcd, err := standin.Get(ctx, r.client, "", etcdguard.OperatorName, &operatorv1.Etcd{})
	if err != nil || etcd == nil || !standin.Managed(ctx, etcd.Spec.ManagementState) {
		return nil, nil, err
	}
	cluster, err := r.topology.Read(ctx, r.client)
	if cluster == nil {
		return nil, nil, err
	}
	return etcd, cluster, nil
}

// publish merges conditions into the status.
func (r *reader) publish(ctx context.Context, live *operatorv1.Etcd, conditions []operatorv1.OperatorCondition) error {
	changed := live.DeepCopy()
	changed.Status.Conditions = standin.Merge(changed.Status.Conditions, conditions...)
	return standin.UpdateStatus(ctx, r.client, live, changed)
}
