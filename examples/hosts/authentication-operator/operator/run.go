// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/auth"
)

// Run runs the operator until the context ends, which is not an error. It has no leader election.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install} {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	probe, err := newProber(restConfig, options)
	if err != nil {
		return err
	}
	if err := awaitKinds(ctx, restConfig); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	byObject, err := cached()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{ByObject: byObject},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	writer, rules := client.WithFieldOwner(mgr.GetClient(), fieldManager), options.rules()
	only := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: auth.ConfigName}}}
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("deployments").
		For(&operatorv1.Authentication{}).
		// The topology and the number of nodes may change while the operator runs.
		Watches(&configv1.Infrastructure{}, only).
		Watches(&corev1.Node{}, only).
		Watches(&appsv1.Deployment{}, only).
		Watches(&policyv1.PodDisruptionBudget{}, only).
		WithOptions(retryOptions()).
		Complete(&reconciler{reader: reader{client: writer}, rules: rules})
	if err != nil {
		return fmt.Errorf("building the controller of the Deployments: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("well-known").
		// A change of its own status is not a reason to reconcile.
		For(&operatorv1.Authentication{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.Infrastructure{}, only).
		Watches(&discoveryv1.EndpointSlice{}, only).
		WithOptions(retryOptions()).
		Complete(&wellKnown{reader: reader{client: writer}, rules: rules, probe: probe, every: options.WellKnownInterval})
	if err != nil {
		return fmt.Errorf("building the controller of the well-known endpoint: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// retryOptions limits the back-off to a few seconds: for some missing objects, such as a namespace, there is no event.
func retryOptions() controller.Options {
	const first, last = 50 * time.Millisecond, 5 * time.Second
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, last)}
}

func cached() (map[client.Object]cache.ByObject, error) {
	master, err := labels.NewRequirement(masterRole, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	singleton := cache.ByObject{Field: named(auth.ConfigName)}
	deployments, budgets := map[string]cache.Config{}, map[string]cache.Config{}
	for _, o := range []operand{oauthServer(), oauthAPIServer()} {
		deployments[o.namespace] = cache.Config{FieldSelector: named(o.name)}
		budgets[o.namespace] = cache.Config{FieldSelector: named(o.budget)}
	}
	return map[client.Object]cache.ByObject{
		&configv1.Infrastructure{}:      singleton,
		&operatorv1.Authentication{}:    singleton,
		&corev1.Node{}:                  {Label: labels.NewSelector().Add(*master)},
		&appsv1.Deployment{}:            {Namespaces: deployments},
		&policyv1.PodDisruptionBudget{}: {Namespaces: budgets},
		&discoveryv1.EndpointSlice{}: {
			Label:      labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: apiServerService}),
			Namespaces: map[string]cache.Config{apiServerNamespace: {}},
		},
	}, nil
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
	said := map[schema.GroupVersionKind]bool{}
	return wait.PollUntilContextCancel(ctx, every, true, func(context.Context) (bool, error) {
		all := true
		for _, kind := range []schema.GroupVersionKind{
			configv1.GroupVersion.WithKind("Infrastructure"), operatorv1.GroupVersion.WithKind("Authentication"),
		} {
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if all = all && err == nil; err != nil && !said[kind] {
				ctrl.LoggerFrom(ctx).Info("Waiting for a CustomResourceDefinition", "kind", kind.Kind, "err", err.Error())
				said[kind] = true
			}
		}
		return all, nil
	})
}
