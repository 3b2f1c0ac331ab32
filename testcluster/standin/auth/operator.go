// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// Operator implements standin.Options.
func (o *Options) Operator() (standin.Operator, error) {
	if !strings.HasPrefix(o.WellKnownPath, "/") {
		return standin.Operator{}, errors.New("--well-known-path must begin with /")
	}
	operands := standin.In(auth.OAuthServerNamespace, auth.OAuthAPIServerNamespace)
	return standin.Operator{
		Name: "authentication-operator",
		Cache: map[client.Object]cache.ByObject{
			&configv1.Infrastructure{}: standin.Singleton(), &operatorv1.Authentication{}: standin.Singleton(),
			&appsv1.Deployment{}: operands, &policyv1.PodDisruptionBudget{}: operands, &discoveryv1.EndpointSlice{}: standin.In(apiServerNamespace),
		},
		SetUp: o.setUp,
	}, nil
}

func (o *Options) setUp(_ context.Context, mgr ctrl.Manager) error {
	r := reconciler{client: mgr.GetClient(), rules: o.rules()}
	err := ctrl.NewControllerManagedBy(mgr).Named("deployments").
		For(&operatorv1.Authentication{}).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&corev1.Node{}, standin.Only()).
		Watches(&appsv1.Deployment{}, standin.Only()).
		Watches(&policyv1.PodDisruptionBudget{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(r.reconcile))
	if err != nil {
		return fmt.Errorf("building the controller of the Deployments: %w", err)
	}
	probe, err := newProber(mgr.GetConfig(), *o)
	if err != nil {
		return err
	}
	w := &wellKnown{reconciler: reconciler{client: mgr.GetClient(), rules: o.rules()}, probe: probe, every: o.WellKnownInterval}
	return ctrl.NewControllerManagedBy(mgr).Named("well-known").
		// A change of its own status is not a reason to reconcile.
		For(&operatorv1.Authentication{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&configv1.Infrastructure{}, standin.Only()).
		Watches(&discoveryv1.EndpointSlice{}, standin.Only()).
		WithOptions(standin.Retry()).
		Complete(standin.Reconcile(w.reconcile))
}

type reconciler struct {
	client   client.Client
	topology standin.Topology
	rules    rules
}

// read returns the Authentication and the topology, or nil if there is none, or none to manage.
func (r *reconciler) read(ctx context.Context) (*operatorv1.Authentication, *topology.Cluster, error) {
	authentication, err := standin.Get(ctx, r.client, "", auth.ConfigName, &operatorv1.Authentication{})
	if err != nil || authentication == nil || !standin.Managed(ctx, authentication.Spec.ManagementState) {
		return nil, nil, err
	}
	cluster, err := r.topology.Read(ctx, r.client)
	if cluster == nil {
		return nil, nil, err
	}
	return authentication, cluster, nil
}

func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	authentication, cluster, err := r.read(ctx)
	if err != nil || authentication == nil {
		return 0, err
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes, client.HasLabels{auth.ControlPlaneNodeLabel}); err != nil {
		return 0, fmt.Errorf("listing the control-plane nodes: %w", err)
	}
	here := place{cluster: *cluster, nodes: r.rules.count(nodes.Items, workload.Tolerate(baseTolerations(), topology.ControlPlanePool))}
	var conditions []operatorv1.OperatorCondition
	enough := true
	if r.rules.minimum != nil {
		minimum, err := r.rules.minimum(*cluster, authentication.Spec.UnsupportedConfigOverrides.Raw)
		if err != nil {
			return 0, fmt.Errorf("reading how many control-plane nodes to wait for: %w", err)
		}
		enough = here.nodes >= minimum.Nodes
		conditions = minimumConditions(minimum, here.nodes)
	}
	var errs []error
	for _, o := range []operand{oauthServer(), oauthAPIServer()} {
		live, err := r.ensure(ctx, o, here, enough)
		errs = append(errs, err)
		conditions = append(conditions, standin.DeploymentConditions(o.conditions, live, cluster.UnknownValues())...)
	}
	changed := authentication.DeepCopy()
	changed.Status.ObservedGeneration = authentication.Generation
	changed.Status.Conditions = standin.Merge(changed.Status.Conditions, conditions...)
	return 0, errors.Join(append(errs, standin.UpdateStatus(ctx, r.client, authentication, changed))...)
}

// ensure reconciles one Deployment and its budget, and returns the Deployment as it was. It creates a missing one if
// there are enough nodes.
func (r *reconciler) ensure(ctx context.Context, o operand, here place, enough bool) (*appsv1.Deployment, error) {
	live, err := standin.Get(ctx, r.client, o.namespace, o.name, &appsv1.Deployment{})
	if err != nil || live == nil && !enough {
		return nil, err
	}
	budget, err := standin.Get(ctx, r.client, o.namespace, o.budget, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return live, err
	}
	want, err := r.rules.shape(o, o.base(live), here)
	if err != nil {
		return live, fmt.Errorf("shaping %s/%s: %w", o.namespace, o.name, err)
	}
	workload.UnblockRollout(want.deployment, live)
	if err := standin.Ensure(ctx, r.client, live, want.deployment); err != nil {
		return live, err
	}
	return live, standin.EnsureBudget(ctx, r.client, budget, want.budget)
}

// rules are the decisions that depend on the topology.
type rules struct {
	// minimum returns how many control-plane nodes must exist before the Deployments are created, from the raw bytes of
	// spec.unsupportedConfigOverrides. nil waits for none and reads no override.
	minimum func(topology.Cluster, []byte) (auth.Minimum, error)
	// count returns how many of the nodes with the master role the pods can use with their tolerations.
	count func([]corev1.Node, []corev1.Toleration) int32
	// shape adapts a Deployment of base to the cluster.
	shape func(operand, *appsv1.Deployment, place) (shaped, error)
	// readiness evaluates one request to each API server.
	readiness func(configv1.TopologyMode, []error, auth.WellKnownState, time.Time) auth.Readiness
}

type place struct {
	cluster topology.Cluster
	nodes   int32
}

type shaped struct {
	deployment *appsv1.Deployment
	// budget is nil if there must be none.
	budget *policyv1.PodDisruptionBudget
}

func (o *Options) rules() rules {
	if o.Stock {
		return rules{count: stockCount, shape: stockShape, readiness: stockReadiness}
	}
	return rules{count: auth.SchedulableControlPlaneNodes, shape: vendoredShape, readiness: auth.WellKnownReadiness,
		minimum: func(cluster topology.Cluster, overrides []byte) (auth.Minimum, error) {
			minimum, err := auth.MinimumControlPlaneNodes(cluster, overrides)
			if cluster.PoolFor(topology.ControlPlanePool) != topology.ControlPlanePool {
				minimum.Nodes = 0 // the cluster has no control-plane nodes
			}
			return minimum, err
		}}
}

func vendoredShape(o operand, base *appsv1.Deployment, s place) (result shaped, err error) {
	shape, budget := auth.ShapeOAuthServer, auth.OAuthServerPodDisruptionBudget
	if o.namespace == auth.OAuthAPIServerNamespace {
		shape, budget = auth.ShapeOAuthAPIServer, auth.OAuthAPIServerPodDisruptionBudget
	}
	if result.deployment, err = shape(base, s.cluster, s.nodes); err != nil {
		return shaped{}, err
	}
	result.budget, err = budget(s.cluster, base.Spec.Selector.MatchLabels)
	return result, err
}
