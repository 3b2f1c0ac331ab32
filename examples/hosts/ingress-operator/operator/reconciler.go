// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// finalizer keeps an IngressController until its router is deleted.
const finalizer = "ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"

type reconciler struct {
	// client reads from the cache and writes as fieldManager.
	client  client.Client
	options Options
	rules   rules

	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
	// reverter is nil unless --revert-placement.
	reverter *placementReverter
}

// Reconcile implements reconcile.Reconciler. It never runs concurrently.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := r.reconcile(ctx, request.NamespacedName)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The event of the write that made the cache stale may already have been processed.
		return reconcile.Result{RequeueAfter: staleCache}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

const staleCache = 50 * time.Millisecond

func (r *reconciler) reconcile(ctx context.Context, key client.ObjectKey) (after time.Duration, err error) {
	infrastructure, err := get(ctx, r.client, client.ObjectKey{Name: ingress.ConfigName}, &configv1.Infrastructure{})
	if err != nil {
		return 0, err
	}
	if infrastructure != nil {
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return 0, fmt.Errorf("reading the topology: %w", err)
		}
		r.known = &cluster
	}
	if r.known == nil {
		logr.FromContextOrDiscard(ctx).Info("Waiting for the Infrastructure object")
		return 0, nil
	}
	var placement configv1.DefaultPlacement
	if config, err := get(ctx, r.client, client.ObjectKey{Name: ingress.ConfigName}, &configv1.Ingress{}); err != nil {
		return 0, err
	} else if config != nil {
		placement = config.Status.DefaultPlacement
	}

	ic, err := get(ctx, r.client, key, &operatorv1.IngressController{})
	if err != nil {
		return 0, err
	}
	if ic == nil || ic.DeletionTimestamp != nil {
		gone, err := r.remove(ctx, key.Name)
		if err != nil {
			return 0, err
		}
		if ic != nil && gone && controllerutil.RemoveFinalizer(ic, finalizer) {
			return 0, r.update(ctx, ic)
		}
		if ic == nil && r.options.CreateDefault && key.Name == ingress.IngressControllerName {
			return 0, r.createDefault(ctx, placement)
		}
		return 0, nil
	}
	if r.reverter != nil && key.Name == ingress.IngressControllerName {
		var write *operatorv1.IngressController
		if write, after = r.reverter.revert(ic, time.Now()); write != nil {
			// The event of this update triggers the next reconciliation.
			return 0, r.update(ctx, write)
		}
	}
	if controllerutil.AddFinalizer(ic, finalizer) {
		if err := r.update(ctx, ic); err != nil {
			return 0, err
		}
	}
	if r.options.Canary && key.Name == ingress.IngressControllerName {
		if err := r.ensureCanary(ctx); err != nil {
			return 0, err
		}
	}
	again, err := r.ensure(ctx, ic, placement)
	if again > 0 && (after == 0 || again < after) {
		after = again
	}
	return after, err
}

// ensure reconciles router, budget and status of an IngressController that is not being deleted. It returns when the
// status changes by time alone; 0 for never.
func (r *reconciler) ensure(ctx context.Context, ic *operatorv1.IngressController, placement configv1.DefaultPlacement) (time.Duration, error) {
	key := client.ObjectKey{Namespace: ingress.RouterNamespace, Name: routerName(ic.Name)}
	liveRouter, err := get(ctx, r.client, key, &appsv1.Deployment{})
	if err != nil {
		return 0, err
	}
	liveBudget, err := get(ctx, r.client, key, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return 0, err
	}
	publishing := effectivePublishing(ic, r.known.Platform)
	decided := ic.DeepCopy()
	decided.Status.EndpointPublishingStrategy = publishing
	base := r.options.baseRouter(liveRouter, ic.Name, publishing)
	if r.options.RouterImage != "" {
		serve(base, r.options.RouterImage, r.options.SharedHostPorts)
	}
	router, budget, err := r.rules.shape(base, inputs{cluster: *r.known, placement: placement, ic: decided})
	if err != nil {
		return 0, fmt.Errorf("shaping the router: %w", err)
	}
	if err := seal(router); err != nil {
		return 0, err
	}
	if err := r.ensureRouter(ctx, liveRouter, router); err != nil {
		return 0, err
	}
	if err := r.ensureBudget(ctx, ic.Name, liveBudget, budget); err != nil {
		return 0, err
	}
	status, after := desiredStatus(ic, publishing, liveRouter, metav1.Now())
	return after, r.ensureStatus(ctx, ic, status)
}

func (r *reconciler) createDefault(ctx context.Context, placement configv1.DefaultPlacement) error {
	ic, err := r.rules.defaultIngressController(*r.known, placement)
	if err != nil || ic == nil {
		return err
	}
	return r.create(ctx, ic)
}
