// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"flag"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are the flags of one operator.
type Options interface {
	// BindFlags adds the flags, with the options as defaults.
	BindFlags(flags *flag.FlagSet)
	// Operator returns what runs with the flags, or an error if they contradict each other.
	Operator() (Operator, error)
}

// Operator is a stand-in.
type Operator struct {
	// Name owns the fields that it writes.
	Name string
	// Kinds are APIs besides those of Kubernetes, config.openshift.io and operator.openshift.io.
	Kinds []func(*runtime.Scheme) error
	// Cache limits what it watches.
	Cache map[client.Object]cache.ByObject
	// SetUp adds the controllers.
	SetUp func(context.Context, ctrl.Manager) error
}

// ConfigName is the name of the only object of every kind of configuration.
const ConfigName = "cluster"

// Singleton limits the cache to ConfigName.
func Singleton() cache.ByObject { return Named(ConfigName) }

// Named limits the cache to objects with a name.
func Named(name string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
}

// In limits the cache to objects in namespaces.
func In(namespaces ...string) cache.ByObject {
	limits := cache.ByObject{Namespaces: map[string]cache.Config{}}
	for _, namespace := range namespaces {
		limits.Namespaces[namespace] = cache.Config{}
	}
	return limits
}

// Run runs the operator until the context ends, which is not an error. It has no leader election. The API server must
// serve all kinds.
func (o Operator) Run(ctx context.Context, restConfig *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, install := range append(o.Kinds, clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install) {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme, Cache: cache.Options{ByObject: o.Cache},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			made, err := client.New(config, options)
			if err != nil {
				return nil, fmt.Errorf("making a client: %w", err)
			}
			return client.WithFieldOwner(made, o.Name), nil
		},
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := o.SetUp(ctx, mgr); err != nil {
		return fmt.Errorf("building the controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// Managed reports whether a configuration asks for the operator's work, and logs if not.
func Managed(ctx context.Context, state operatorv1.ManagementState) bool {
	if state == operatorv1.Unmanaged || state == operatorv1.Removed {
		ctrl.LoggerFrom(ctx).Info("Not to be managed", "managementState", state)
		return false
	}
	return true
}

// Retry limits the back-off of a controller to a few seconds: for some missing objects, such as a namespace, there is
// no event.
func Retry() controller.Options {
	const first, last = 50 * time.Millisecond, 5 * time.Second
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, last)}
}

// Only maps every event to the only request of a controller.
func Only() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ConfigName}}}
	})
}

// Reconcile is one pass for an object. The duration is when to repeat it without an event; 0 for never.
type Reconcile func(ctx context.Context, key client.ObjectKey) (after time.Duration, err error)

// staleCache is when to try again after a write that the API server refused because the cache was stale: the event of
// the write that made it stale may already have been processed.
const staleCache = 50 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (r Reconcile) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := r(ctx, request.NamespacedName)
	if OnlyStale(err) {
		return reconcile.Result{RequeueAfter: staleCache}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}
