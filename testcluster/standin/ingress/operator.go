// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// finalizer keeps an IngressController until its router is deleted.
const finalizer = "ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	switch {
	case o.SharedHostPorts && o.Stock:
		return standin.Operator{}, errors.New("--shared-host-ports is a rule of the vendored module, not one of --stock")
	case o.MinReadySeconds < 0:
		return standin.Operator{}, errors.New("--min-ready-seconds is 0 or more")
	}
	routers := standin.In(ingress.RouterNamespace)
	return standin.Operator{
		Name: "cluster-ingress-operator",
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &configv1.Ingress{}: standin.Singleton(),
			&operatorv1.IngressController{}: standin.In(ingress.IngressControllerNamespace),
			&appsv1.Deployment{}:            routers, &policyv1.PodDisruptionBudget{}: routers, &corev1.Pod{}: routers,
			&appsv1.DaemonSet{}: standin.In(canaryNamespace),
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(ctx context.Context, mgr ctrl.Manager) error {
	writeDefaultPlacement(ctx, mgr.GetAPIReader(), mgr.GetClient())
	r := &reconciler{client: mgr.GetClient(), options: *o}
	each := handler.EnqueueRequestsFromMapFunc(r.everyIngressController)
	owner := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if name := object.GetLabels()[owningLabel]; name != "" {
			return requests(name)
		}
		return nil
	})
	byDefault := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return requests(ingress.IngressControllerName)
	})
	err := ctrl.NewControllerManagedBy(mgr).
		For(&operatorv1.IngressController{}).
		Watches(&configv1.Infrastructure{}, each).
		Watches(&configv1.Ingress{}, each).
		Watches(&appsv1.Deployment{}, owner).
		Watches(&policyv1.PodDisruptionBudget{}, owner).
		Watches(&appsv1.DaemonSet{}, byDefault).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(r.reconcile))
	if err != nil {
		return fmt.Errorf("building the controller of routers: %w", err)
	}
	s := &spreader{client: mgr.GetClient(), minReadySeconds: int32(o.MinReadySeconds)} //nolint:gosec // a number of seconds
	return ctrl.NewControllerManagedBy(mgr).Named("spread-default-router-pods").
		Watches(&corev1.Pod{}, byDefault).
		Complete(standin.Reconcile(s.reconcile))
}

func requests(names ...string) (all []reconcile.Request) {
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: name}})
	}
	return all
}

type reconciler struct {
	client   client.Client
	options  Options
	topology standin.Topology
}

// everyIngressController includes the default one, which may have to be created.
func (r *reconciler) everyIngressController(ctx context.Context, _ client.Object) []reconcile.Request {
	all := requests(ingress.IngressControllerName)
	var list operatorv1.IngressControllerList
	if err := r.client.List(ctx, &list, client.InNamespace(ingress.IngressControllerNamespace)); err != nil {
		// Listing only fails if the cache is not running.
		ctrl.LoggerFrom(ctx).Error(err, "IngressControllers cannot be listed")
	}
	for i := range list.Items {
		if name := list.Items[i].Name; name != ingress.IngressControllerName {
			all = append(all, requests(name)...)
		}
	}
	return all
}

func (r *reconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	cluster, err := r.topology.Read(ctx, r.client)
	if err != nil || cluster == nil {
		return 0, err
	}
	config, err := standin.Get(ctx, r.client, "", standin.ConfigName, &configv1.Ingress{})
	if err != nil {
		return 0, err
	}
	in := inputs{cluster: *cluster}
	if config != nil {
		in.placement = config.Status.DefaultPlacement
	}
	ic, err := standin.Get(ctx, r.client, key.Namespace, key.Name, &operatorv1.IngressController{})
	if err != nil {
		return 0, err
	}
	if ic == nil || ic.DeletionTimestamp != nil {
		return 0, r.remove(ctx, key.Name, ic, in)
	}
	isDefault := key.Name == ingress.IngressControllerName
	if controllerutil.AddFinalizer(ic, finalizer) {
		if err := standin.Update(ctx, r.client, ic); err != nil {
			return 0, err
		}
	}
	if r.options.Canary && isDefault {
		live, err := standin.Get(ctx, r.client, canaryNamespace, canaryName, &appsv1.DaemonSet{})
		if err != nil {
			return 0, err
		}
		if err := standin.Ensure(ctx, r.client, live, canary(live)); err != nil {
			return 0, err
		}
	}
	in.ic = ic
	return 0, r.ensure(ctx, in)
}

// ensure reconciles router, budget and status.
func (r *reconciler) ensure(ctx context.Context, in inputs) error {
	liveRouter, liveBudget, err := r.read(ctx, in.ic.Name)
	if err != nil {
		return err
	}
	live := in.ic
	in.ic = live.DeepCopy()
	in.ic.Status.EndpointPublishingStrategy = effectivePublishing(live, in.cluster.Platform)
	router, budget, err := r.options.shape(r.options.baseRouter(liveRouter, in.ic), in)
	if err != nil {
		return fmt.Errorf("shaping the router: %w", err)
	}
	if err := seal(router); err != nil {
		return err
	}
	if budget != nil {
		budget.Labels = standin.With(budget.Labels, map[string]string{owningLabel: in.ic.Name})
	}
	if err := standin.Ensure(ctx, r.client, liveRouter, router); err != nil {
		return err
	}
	if err := standin.EnsureBudget(ctx, r.client, liveBudget, budget); err != nil {
		return err
	}
	setStatus(in.ic, liveRouter)
	return standin.UpdateStatus(ctx, r.client, live, in.ic)
}

func (r *reconciler) read(ctx context.Context, ingressController string) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	router, err := standin.Get(ctx, r.client, ingress.RouterNamespace, routerName(ingressController), &appsv1.Deployment{})
	if err != nil {
		return nil, nil, err
	}
	budget, err := standin.Get(ctx, r.client, ingress.RouterNamespace, routerName(ingressController), &policyv1.PodDisruptionBudget{})
	return router, budget, err
}

// remove deletes the objects of an IngressController that is deleted or being deleted, and then its finalizer; or it
// creates the default one.
func (r *reconciler) remove(ctx context.Context, name string, ic *operatorv1.IngressController, in inputs) error {
	router, budget, err := r.read(ctx, name)
	switch {
	case err != nil:
		return err
	case router != nil:
		if err := standin.Delete(ctx, r.client, router); err != nil {
			return err
		}
	}
	switch {
	case budget != nil:
		return standin.Delete(ctx, r.client, budget)
	case router != nil:
		return nil
	case ic != nil && controllerutil.RemoveFinalizer(ic, finalizer):
		return standin.Update(ctx, r.client, ic)
	case ic == nil && r.options.CreateDefault && name == ingress.IngressControllerName:
		created, err := r.options.defaultIngressController(in.cluster, in.placement)
		if err != nil || created == nil {
			return err
		}
		return standin.Create(ctx, r.client, created)
	}
	return nil
}

// inputs are what the topology decides by.
type inputs struct {
	cluster   topology.Cluster
	placement configv1.DefaultPlacement
	// ic is the router's IngressController, with the effective publishing strategy in its status.
	ic *operatorv1.IngressController
}

// defaultIngressController returns the default IngressController to create if there is none; nil for none.
func (o Options) defaultIngressController(cluster topology.Cluster, placement configv1.DefaultPlacement) (*operatorv1.IngressController, error) {
	if o.Stock {
		return stockDefaultIngressController(cluster, placement), nil
	}
	return ingress.DefaultIngressController(cluster, placement, ingress.PlacementFromTopology)
}

// shape adapts the router of baseRouter to the topology. The budget is nil if there must be none.
func (o Options) shape(router *appsv1.Deployment, in inputs) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	if o.Stock {
		return stockShape(router, in)
	}
	host, err := ingress.NewHost(in.cluster, in.placement, in.ic)
	if err != nil {
		return nil, nil, err
	}
	if o.SharedHostPorts {
		host = host.WithSharedHostPorts()
	}
	budget, err := ingress.RouterPodDisruptionBudget(host, router.Spec.Selector.MatchLabels)
	if err != nil {
		return nil, nil, err
	}
	shaped, err := ingress.ShapeRouter(router, host)
	return shaped, budget, err
}
