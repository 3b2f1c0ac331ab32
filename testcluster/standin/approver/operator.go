// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/testcluster/standin"
)

const operatorName = "machine-approver"

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	return standin.Operator{
		Name: operatorName,
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &configv1.ClusterOperator{}: standin.Named(operatorName),
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	disabled, err := o.clientFlowDisabled()
	if err != nil {
		mgr.GetLogger().Error(err, "Ignoring the configuration")
	}
	// Without any object there is no event.
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: standin.ConfigName}})
		return nil
	})
	noHeartbeat := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false }}
	r := &reconciler{live: mgr.GetAPIReader(), writer: mgr.GetClient(), stock: o.Stock, disabled: disabled, retry: o.RetryInterval}
	return ctrl.NewControllerManagedBy(mgr).Named("requests").
		WatchesRawSource(first).
		// The requests are read again without a cache, so their metadata is enough here.
		Watches(&certificatesv1.CertificateSigningRequest{}, standin.Only(), builder.OnlyMetadata).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&configv1.ClusterOperator{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only(), builder.OnlyMetadata, builder.WithPredicates(noHeartbeat)).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(r.reconcile))
}
