// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	inConsole := standin.In(console.Namespace)
	return standin.Operator{
		Name: "console-operator",
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.Console{}: standin.Singleton(),
			&appsv1.Deployment{}: inConsole, &policyv1.PodDisruptionBudget{}: inConsole,
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	r := &reconciler{client: mgr.GetClient(), options: *o}
	return ctrl.NewControllerManagedBy(mgr).
		For(&operatorv1.Console{}).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&appsv1.Deployment{}, standin.Only()).
		Watches(&policyv1.PodDisruptionBudget{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(r.reconcile))
}

type reconciler struct {
	client   client.Client
	topology standin.Topology
	options  Options
}

func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	live, err := standin.Get(ctx, r.client, "", standin.ConfigName, &operatorv1.Console{})
	if err != nil || live == nil || !standin.Managed(ctx, live.Spec.ManagementState) {
		return 0, err
	}
	cluster, err := r.topology.Read(ctx, r.client)
	if err != nil || cluster == nil {
		return 0, err
	}
	var errs []error
	var conditions []operatorv1.OperatorCondition
	for _, o := range r.options.operands() {
		reported, err := r.ensure(ctx, o, *cluster)
		conditions, errs = append(conditions, reported...), append(errs, err)
	}
	changed := live.DeepCopy()
	changed.Status.ObservedGeneration = live.Generation
	changed.Status.Conditions = standin.Merge(changed.Status.Conditions, conditions...)
	return 0, errors.Join(append(errs, standin.UpdateStatus(ctx, r.client, live, changed))...)
}

// ensure reconciles one Deployment and its budget, and returns the conditions.
func (r *reconciler) ensure(ctx context.Context, o operand, cluster topology.Cluster) ([]operatorv1.OperatorCondition, error) {
	live, err := standin.Get(ctx, r.client, console.Namespace, o.name, &appsv1.Deployment{})
	if err != nil {
		return nil, err
	}
	budget, err := standin.Get(ctx, r.client, console.Namespace, o.name, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return nil, err
	}
	want, wantBudget, err := r.options.shape(o.base(live), cluster)
	if err != nil {
		return nil, fmt.Errorf("shaping Deployment %s: %w", o.name, err)
	}
	workload.UnblockRollout(want, live)
	err = errors.Join(standin.Ensure(ctx, r.client, live, want), standin.EnsureBudget(ctx, r.client, budget, wantBudget))
	return standin.DeploymentConditions(o.conditions, live, cluster.UnknownValues()), err
}

func (o Options) shape(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	if o.Stock {
		deployment, budget := stockShape(base, cluster)
		return deployment, budget, nil
	}
	deployment, err := console.ShapeDeployment(base, cluster)
	if err != nil {
		return nil, nil, err
	}
	budget, err := console.PodDisruptionBudget(base.Name, cluster)
	return deployment, budget, err
}
