// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

type reader struct {
	// client reads from the cache and writes as fieldManager.
	client client.Client
	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
}

// authentication returns the Authentication if it exists and is managed, else nil.
func (r *reader) authentication(ctx context.Context) (*operatorv1.Authentication, error) {
	authentication, err := get(ctx, r.client, client.ObjectKey{Name: auth.ConfigName}, &operatorv1.Authentication{})
	if err != nil {
		return nil, err
	}
	if authentication == nil {
		logr.FromContextOrDiscard(ctx).Info("Waiting for the Authentication object")
		return nil, nil
	}
	switch state := authentication.Spec.ManagementState; state {
	case operatorv1.Unmanaged, operatorv1.Removed:
		logr.FromContextOrDiscard(ctx).Info("Not to be managed", "managementState", state)
		return nil, nil
	case operatorv1.Managed, operatorv1.Force:
	}
	return authentication, nil
}

// cluster returns the current topology, or nil if none was ever read.
func (r *reader) cluster(ctx context.Context) (*topology.Cluster, error) {
	infrastructure, err := get(ctx, r.client, client.ObjectKey{Name: auth.ConfigName}, &configv1.Infrastructure{})
	if err != nil {
		return nil, err
	}
	if infrastructure != nil {
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return nil, fmt.Errorf("reading the topology: %w", err)
		}
		r.known = &cluster
	}
	if r.known == nil {
		logr.FromContextOrDiscard(ctx).Info("Waiting for the Infrastructure object")
	}
	return r.known, nil
}

type reconciler struct {
	reader
	rules rules
}

const staleCache = 50 * time.Millisecond

// Reconcile implements reconcile.Reconciler. It never runs concurrently.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	err := r.reconcile(ctx)
	if onlyStale(err) {
		// The event of the write that made the cache stale may already have been processed.
		return reconcile.Result{RequeueAfter: staleCache}, nil
	}
	return reconcile.Result{}, err
}

func onlyStale(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if !onlyStale(err) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func (r *reconciler) reconcile(ctx context.Context) error {
	authentication, err := r.authentication(ctx)
	if err != nil || authentication == nil {
		return err
	}
	cluster, err := r.cluster(ctx)
	if err != nil || cluster == nil {
		return err
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes, client.HasLabels{masterRole}); err != nil {
		return fmt.Errorf("listing the control-plane nodes: %w", err)
	}
	tolerations := workload.Tolerate(baseTolerations(), topology.ControlPlanePool)
	here := place{cluster: *cluster, nodes: r.rules.count(nodes.Items, tolerations)}

	var conditions []operatorv1.OperatorCondition
	enough := true
	if r.rules.minimum != nil {
		minimum, err := r.rules.minimum(*cluster, authentication.Spec.UnsupportedConfigOverrides.Raw)
		if err != nil {
			return fmt.Errorf("reading how many control-plane nodes to wait for: %w", err)
		}
		enough = here.nodes >= minimum.Nodes
		conditions = minimumConditions(minimum, here.nodes)
	}
	var errs []error
	for _, each := range []struct {
		operand
		shape func(*appsv1.Deployment, place) (shaped, error)
	}{{oauthServer(), r.rules.oauthServer}, {oauthAPIServer(), r.rules.oauthAPIServer}} {
		live, err := r.ensure(ctx, each.operand, here, each.shape, enough)
		errs = append(errs, err)
		conditions = append(conditions, deploymentConditions(each.conditions, live, cluster.UnknownValues())...)
	}
	errs = append(errs, publish(ctx, r.client, authentication, func(status *operatorv1.AuthenticationStatus) {
		status.ObservedGeneration = authentication.Generation
		status.Conditions = merged(status.Conditions, conditions, metav1.Now())
	}))
	return errors.Join(errs...)
}

// ensure reconciles one Deployment and its budget, and returns the Deployment as it was. It creates a missing one if
// there are enough nodes.
func (r *reconciler) ensure(ctx context.Context, o operand, here place, shape func(*appsv1.Deployment, place) (shaped, error), enough bool) (*appsv1.Deployment, error) {
	live, err := get(ctx, r.client, o.key(), &appsv1.Deployment{})
	if err != nil {
		return nil, err
	}
	if live == nil && !enough {
		return nil, nil
	}
	budget, err := get(ctx, r.client, client.ObjectKey{Namespace: o.namespace, Name: o.budget}, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return live, err
	}
	want, err := shape(o.base(live), here)
	if err != nil {
		return live, err
	}
	workload.UnblockRollout(want.deployment, live)
	if err := ensureDeployment(ctx, r.client, live, want.deployment); err != nil {
		return live, err
	}
	if want.keepBudget {
		return live, nil
	}
	return live, ensureBudget(ctx, r.client, budget, want.budget)
}
