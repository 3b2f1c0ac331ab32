// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/machineconfig"
)

// Run runs the operator until the context ends, which is not an error. It has no leader election.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install, mcfgv1.Install} {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	if err := awaitKinds(ctx, restConfig, options); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: named(machineconfig.OperatorName), &operatorv1.MachineConfiguration{}: named(machineconfig.OperatorName),
			&mcfgv1.MachineConfig{}: named(shutdownConfig),
		}},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := setUp(mgr, clientset, options); err != nil {
		return fmt.Errorf("building the controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

func setUp(mgr ctrl.Manager, clientset kubernetes.Interface, options Options) error {
	only := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: machineconfig.OperatorName}}}
	})
	source := reader{client: client.WithFieldOwner(mgr.GetClient(), fieldManager), direct: mgr.GetAPIReader()}
	// A change of its own status is not a reason to reconcile.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).Named("nodes").
		For(&operatorv1.MachineConfiguration{}, changed).
		// The topology may change while the operator runs.
		Watches(&configv1.Infrastructure{}, only).
		Watches(&corev1.Node{}, only).
		Watches(&mcfgv1.MachineConfigPool{}, only).
		WithOptions(retryOptions()).
		Complete(&nodeReconciler{reader: source, clientset: clientset, rules: options.rules(), drains: map[types.UID]*drain{}})
	if err != nil || options.Stock {
		return err // the stock operator sets no grace periods (U-MCO-8)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("shutdown").
		For(&operatorv1.MachineConfiguration{}, changed).
		Watches(&configv1.Infrastructure{}, only).
		Watches(&corev1.Node{}, only, builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}))).
		Watches(&mcfgv1.MachineConfig{}, only).
		WithOptions(retryOptions()).
		Complete(&shutdownReconciler{reader: source, clock: clock.RealClock{}, bound: options.ShutdownBound, settle: options.ShutdownSettle})
}

// retryOptions limits the back-off to a few seconds: for some missing objects there is no event.
func retryOptions() controller.Options {
	const first, last = 50 * time.Millisecond, 5 * time.Second
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, last)}
}

// awaitKinds waits until the API server serves the watched kinds of OpenShift, which a manager requires.
func awaitKinds(ctx context.Context, restConfig *rest.Config, options Options) error {
	const every = time.Second
	http, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(restConfig, http)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	kinds := []schema.GroupVersionKind{
		configv1.GroupVersion.WithKind("Infrastructure"), operatorv1.GroupVersion.WithKind("MachineConfiguration"), mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
	}
	if !options.Stock {
		kinds = append(kinds, mcfgv1.GroupVersion.WithKind("MachineConfig"))
	}
	logged := map[schema.GroupVersionKind]bool{}
	return wait.PollUntilContextCancel(ctx, every, true, func(context.Context) (bool, error) {
		all := true
		for _, kind := range kinds {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if all = all && err == nil; err != nil && !logged[kind] {
				ctrl.LoggerFrom(ctx).Info("Waiting for a CustomResourceDefinition", "kind", kind.Kind, "err", err.Error())
				logged[kind] = true
			}
		}
		return all, nil
	})
}
