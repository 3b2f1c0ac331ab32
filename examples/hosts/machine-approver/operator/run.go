// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Run runs the operator until the context ends, which is not an error. It has no leader election.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install} {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	disabled, err := options.clientFlowDisabled()
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Ignoring the configuration")
	}
	if err := awaitKinds(ctx, restConfig); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: named("cluster"), &configv1.ClusterOperator{}: named(operatorName),
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{authorityNamespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", authorityName)}},
			},
		}},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	pass := reconcile.Request{NamespacedName: client.ObjectKey{Name: operatorName}}
	only := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{pass} })
	// Without any object there is no event.
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(pass)
		return nil
	})
	const shortest, longest = 50 * time.Millisecond, 30 * time.Second
	err = ctrl.NewControllerManagedBy(mgr).Named("requests").
		WatchesRawSource(first).
		// The requests are read again without a cache, so their metadata is enough here.
		Watches(&certificatesv1.CertificateSigningRequest{}, only, builder.OnlyMetadata).
		Watches(&configv1.Infrastructure{}, only).
		Watches(&configv1.ClusterOperator{}, only).
		Watches(&corev1.ConfigMap{}, only).
		Watches(&corev1.Node{}, only, builder.OnlyMetadata, builder.WithPredicates(createdOrDeleted())).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortest, longest)}).
		Complete(&reconciler{
			reader: reader{live: mgr.GetAPIReader(), call: options.call}, writer: client.WithFieldOwner(mgr.GetClient(), fieldManager),
			rules: options.rules(), disabled: disabled, retry: options.RetryInterval, maxPending: options.MaxPending,
			clock: clock.RealClock{}, events: mgr.GetEventRecorder(fieldManager), reported: map[types.UID]string{},
		})
	if err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// awaitKinds waits until the API server serves the watched kinds of OpenShift, which a manager requires.
func awaitKinds(ctx context.Context, restConfig *rest.Config) error {
	const every = time.Second
	http, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(restConfig, http)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	logged := map[schema.GroupVersionKind]bool{}
	return wait.PollUntilContextCancel(ctx, every, true, func(context.Context) (bool, error) {
		all := true
		for _, kind := range []schema.GroupVersionKind{
			configv1.GroupVersion.WithKind("Infrastructure"), configv1.GroupVersion.WithKind("ClusterOperator"),
		} {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if all = all && err == nil; err != nil && !logged[kind] {
				ctrl.LoggerFrom(ctx).Info("Waiting for a CustomResourceDefinition", "kind", kind.Kind, "err", err.Error())
				logged[kind] = true
			}
		}
		return all, nil
	})
}

// createdOrDeleted selects events after which a node exists or does not: heartbeats change nothing.
func createdOrDeleted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false }}
}
