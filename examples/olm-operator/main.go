// SPDX-License-Identifier: Apache-2.0

// Command olm-operator is an operator as a person installs it by the Operator Lifecycle Manager, on controller-runtime.
// It vendors topology alone, and keeps one Deployment and its budget in the shape that the topology asks for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/topology"
)

const (
	// name is that of the operator and its Lease, and owns its fields; operand is that of its Deployment and budget.
	name, operand = "olm-operator", "example-server"
	// pool is where the operand runs.
	pool = topology.WorkerPool
)

var labels = map[string]string{"app.kubernetes.io/name": operand}

func main() {
	namespace := flag.String("namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the operator and its operand.")
	image := flag.String("image", "registry.example.com/example/server:1", "Image of the operand.")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), &reconciler{namespace: *namespace, image: *image}); err != nil {
		klog.Background().Error(err, "The operator ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, r *reconciler) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(kubernetes.AddToScheme(scheme), configv1.Install(scheme)))
	config := ctrl.GetConfigOrDie()
	first, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := r.waitForTopology(ctx, first); err != nil {
		return err
	}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	watched := map[client.Object]cache.ByObject{&appsv1.Deployment{}: named(operand), &policyv1.PodDisruptionBudget{}: named(operand)}
	if !r.elsewhere {
		watched[&configv1.Infrastructure{}] = named("cluster")
	}
	// The API server renews the Lease, so the control plane decides. A change counts from the next start.
	class := topology.LeaderElection(r.cluster.ControlPlane.Mode)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: watched, DefaultNamespaces: map[string]cache.Config{r.namespace: {}}},
		LeaderElection: true, LeaderElectionID: name, LeaderElectionNamespace: r.namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &class.LeaseDuration, RenewDeadline: &class.RenewDeadline, RetryPeriod: &class.RetryPeriod,
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	r.client = mgr.GetClient()
	one := func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{{}} }
	controller := ctrl.NewControllerManagedBy(mgr).Named(name)
	for object := range watched {
		controller.Watches(object, handler.EnqueueRequestsFromMapFunc(one))
	}
	at := make(chan event.GenericEvent, 1)
	at <- event.GenericEvent{} // at first there may be no object to watch
	controller.WatchesRawSource(source.Channel(at, handler.EnqueueRequestsFromMapFunc(one)))
	if err := controller.Complete(r); err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return mgr.Start(ctx)
}

type reconciler struct {
	namespace, image string
	client           client.Client
	// cluster is the last topology: it holds while the Infrastructure is missing or cannot be read.
	cluster topology.Cluster
	// elsewhere means that the cluster has no kind Infrastructure: it is not OpenShift.
	elsewhere bool
}

// waitForTopology reads the first topology: a process that has none leaves the operand alone.
func (r *reconciler) waitForTopology(ctx context.Context, reader client.Reader) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		infrastructure := &configv1.Infrastructure{}
		err := reader.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure)
		if r.elsewhere = meta.IsNoMatchError(err); err != nil && !r.elsewhere {
			klog.FromContext(ctx).Info("Waiting for the Infrastructure object", "reason", err.Error())
			return false, nil
		}
		r.cluster, err = topology.FromInfrastructure(infrastructure) // empty values are HighlyAvailable
		klog.FromContext(ctx).Info("Following the topology", "openShift", !r.elsewhere, "controlPlaneTopology", r.cluster.ControlPlane.Mode)
		return true, err
	})
}

// Reconcile writes what differs from the wanted fields, and nothing else.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if infrastructure := (&configv1.Infrastructure{}); !r.elsewhere {
		err := r.client.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure)
		if cluster, invalid := topology.FromInfrastructure(infrastructure); err == nil && invalid == nil {
			r.cluster = cluster
		} else if client.IgnoreNotFound(err) != nil || err == nil {
			return ctrl.Result{}, fmt.Errorf("read the topology: %w", errors.Join(err, invalid))
		}
	}
	return ctrl.Result{}, errors.Join(r.ensureDeployment(ctx), r.ensureBudget(ctx))
}

func (r *reconciler) ensureDeployment(ctx context.Context) error {
	live := &appsv1.Deployment{}
	getErr := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: operand}, live)
	owned, err := appsv1ac.ExtractDeployment(live, name)
	if err := errors.Join(client.IgnoreNotFound(getErr), err); err != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	if want := r.deployment(); !equality.Semantic.DeepEqual(owned, want) {
		return r.client.Apply(ctx, want, client.FieldOwner(name), client.ForceOwnership)
	}
	return nil
}

func (r *reconciler) deployment() *appsv1ac.DeploymentApplyConfiguration {
	mode := r.cluster.Governing(pool)
	rollout := topology.RolloutStrategy(mode, false)
	pod := corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("server").WithImage(r.image))
	if !r.elsewhere { // other clusters do not label workers
		placement := topology.PlacementOf(r.cluster.PoolFor(pool))
		pod.WithNodeSelector(placement.NodeSelector())
		for _, t := range placement.Tolerations() {
			pod.WithTolerations(corev1ac.Toleration().WithKey(t.Key).WithOperator(corev1.TolerationOperator(t.Operator)).WithEffect(corev1.TaintEffect(t.Effect)))
		}
	}
	if topology.SpreadRequired(mode) {
		// Unlike anti-affinity, a constraint of the pods of one revision does not keep those of another from a node.
		pod.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().WithMaxSkew(1).WithMinDomains(topology.Replicas(mode)).
			WithTopologyKey(corev1.LabelHostname).WithWhenUnsatisfiable(corev1.DoNotSchedule).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey))
	}
	return appsv1ac.Deployment(operand, r.namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(topology.Replicas(mode)).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).WithRollingUpdate(
			appsv1ac.RollingUpdateDeployment().WithMaxUnavailable(rollout.MaxUnavailable).WithMaxSurge(rollout.MaxSurge))).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod)))
}

func (r *reconciler) ensureBudget(ctx context.Context) error {
	live := &policyv1.PodDisruptionBudget{}
	getErr := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: operand}, live)
	owned, err := policyv1ac.ExtractPodDisruptionBudget(live, name)
	if err := errors.Join(client.IgnoreNotFound(getErr), err); err != nil {
		return fmt.Errorf("read the PodDisruptionBudget: %w", err)
	}
	maxUnavailable, needed := topology.DisruptionBudget(r.cluster.Governing(pool))
	want := policyv1ac.PodDisruptionBudget(operand, r.namespace).WithSpec(policyv1ac.PodDisruptionBudgetSpec().
		WithMaxUnavailable(maxUnavailable).WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)))
	switch {
	case needed && !equality.Semantic.DeepEqual(owned, want):
		return r.client.Apply(ctx, want, client.FieldOwner(name), client.ForceOwnership)
	case !needed && owned.Spec != nil: // another owner's budget stays
		return client.IgnoreNotFound(r.client.Delete(ctx, live))
	}
	return nil
}
