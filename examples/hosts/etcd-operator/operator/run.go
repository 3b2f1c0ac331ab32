// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
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

	"github.com/solonode/sno/etcdguard"
)

var guardLabels = map[string]string{"app": "guard"}

// Run runs the operator until the context ends, which is not an error. It has no leader election.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install} {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	if err := awaitKinds(ctx, restConfig); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	singleton := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", etcdguard.OperatorName)}
	inEtcd := cache.ByObject{Namespaces: map[string]cache.Config{etcdguard.Namespace: {}}}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: singleton, &operatorv1.Etcd{}: singleton, &corev1.Pod{}: inEtcd, &policyv1.PodDisruptionBudget{}: inEtcd,
		}},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	setUp := vendoredControllers
	if options.Stock {
		setUp = stockController
	}
	if err := setUp(mgr, options); err != nil {
		return fmt.Errorf("building the controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// only maps every event to the only reconciliation of a controller.
var only = handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: etcdguard.OperatorName}}}
})

func stockController(mgr ctrl.Manager, _ Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("guards").
		Watches(&corev1.Node{}, only).Watches(&corev1.Pod{}, only).Watches(&policyv1.PodDisruptionBudget{}, only).
		WithOptions(retryOptions()).
		Complete(&stockGuards{client: client.WithFieldOwner(mgr.GetClient(), fieldManager), direct: mgr.GetAPIReader()})
}

func vendoredControllers(mgr ctrl.Manager, options Options) error {
	writer := client.WithFieldOwner(mgr.GetClient(), fieldManager)
	members := &memberReconciler{
		reader: reader{client: writer}, etcdClient: newEtcd(options), every: options.MembersInterval,
		changed: make(chan event.TypedGenericEvent[client.Object], 1),
	}
	members.voters.Store(-1)
	// A change of its own status is not a reason to reconcile.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).Named("members").
		For(&operatorv1.Etcd{}, changed).
		Watches(&configv1.Infrastructure{}, only).
		Watches(&corev1.Node{}, only, builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, createdOrDeleted()))).
		WithOptions(retryOptions()).
		Complete(members)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("guards").
		For(&operatorv1.Etcd{}, changed).
		// The topology and the nodes may change while the operator runs.
		Watches(&configv1.Infrastructure{}, only).
		Watches(&corev1.Node{}, only).
		Watches(&corev1.Pod{}, only).
		Watches(&policyv1.PodDisruptionBudget{}, only).
		WatchesRawSource(source.Channel(members.changed, only)).
		WithOptions(retryOptions()).
		Complete(&guardReconciler{reader: reader{client: writer}, image: options.Image, voters: func() int { return int(members.voters.Load()) }})
}

func createdOrDeleted() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// retryOptions limits the back-off to a few seconds: for some missing objects, such as a namespace, there is no event.
func retryOptions() controller.Options {
	const first, last = 50 * time.Millisecond, 5 * time.Second
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, last)}
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
			configv1.GroupVersion.WithKind("Infrastructure"), operatorv1.GroupVersion.WithKind("Etcd"),
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
