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
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/ingress"
)

// Run runs the operator until the context ends, which is not an error. Like the stock operator it has no leader
// election.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install} {
		if err := install(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
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
	writer := client.WithFieldOwner(mgr.GetClient(), fieldManager)
	writeDefaultPlacement(ctx, mgr.GetAPIReader(), writer)
	r := &reconciler{client: writer, options: options, rules: options.rules()}
	if options.RevertPlacement {
		r.reverter = &placementReverter{every: options.RevertInterval}
	}
	every := handler.EnqueueRequestsFromMapFunc(r.everyIngressController)
	owner := handler.EnqueueRequestsFromMapFunc(owningIngressController)
	err = ctrl.NewControllerManagedBy(mgr).
		For(&operatorv1.IngressController{}).
		Watches(&configv1.Infrastructure{}, every).
		Watches(&configv1.Ingress{}, every).
		Watches(&appsv1.Deployment{}, owner).
		Watches(&policyv1.PodDisruptionBudget{}, owner).
		Watches(&appsv1.DaemonSet{}, handler.EnqueueRequestsFromMapFunc(defaultIngressController)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("spread-default-router-pods").
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(defaultIngressController)).
		Complete(&spreader{client: writer, minReady: time.Duration(options.MinReadySeconds) * time.Second})
	if err != nil {
		return fmt.Errorf("building the controller of crowded routers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

func cached() (map[client.Object]cache.ByObject, error) {
	ours, err := labels.NewRequirement(owningLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	singleton := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", ingress.ConfigName)}
	routers := cache.ByObject{
		Label:      labels.NewSelector().Add(*ours),
		Namespaces: map[string]cache.Config{ingress.RouterNamespace: {}},
	}
	return map[client.Object]cache.ByObject{
		&configv1.Infrastructure{}:      singleton,
		&configv1.Ingress{}:             singleton,
		&operatorv1.IngressController{}: {Namespaces: map[string]cache.Config{ingress.IngressControllerNamespace: {}}},
		&appsv1.Deployment{}:            routers,
		&policyv1.PodDisruptionBudget{}: routers,
		&appsv1.DaemonSet{}:             {Namespaces: map[string]cache.Config{canaryNamespace: {}}},
		&corev1.Pod{}: {
			Label:      labels.SelectorFromSet(labels.Set{podLabel: ingress.IngressControllerName}),
			Namespaces: map[string]cache.Config{ingress.RouterNamespace: {}},
		},
	}, nil
}

func (r *reconciler) everyIngressController(ctx context.Context, _ client.Object) []reconcile.Request {
	requests := []reconcile.Request{requestFor(ingress.IngressControllerName)}
	var list operatorv1.IngressControllerList
	if err := r.client.List(ctx, &list, client.InNamespace(ingress.IngressControllerNamespace)); err != nil {
		// Listing only fails if the cache is not running.
		ctrl.LoggerFrom(ctx).Error(err, "IngressControllers cannot be listed")
		return requests
	}
	for i := range list.Items {
		if name := list.Items[i].Name; name != ingress.IngressControllerName {
			requests = append(requests, requestFor(name))
		}
	}
	return requests
}

func owningIngressController(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(object.GetLabels()[owningLabel])}
}

func defaultIngressController(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(ingress.IngressControllerName)}
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: name}}
}
