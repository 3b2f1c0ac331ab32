// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// EtcdUser is the user and field manager of the etcd operator.
	EtcdUser = "cluster-etcd-operator"
	// GuardBudget is the name of the guards' PodDisruptionBudget.
	GuardBudget = "etcd-guard-pdb"

	guardPrefix  = "etcd-guard-"
	guardApp     = "guard"
	guardAccount = "guard-sa"
	arbiterRole  = "node-role.kubernetes.io/arbiter"
	guardPort    = 9980
	// cacheDelay bounds the delay of the event that updates a stale cache.
	cacheDelay = 50 * time.Millisecond
)

// Etcd is the guard controller of the stock etcd operator (U-ETC-7, U-ETC-9): a pod that is pinned to each
// control-plane node, and a PodDisruptionBudget for the number of these nodes; neither on SingleReplica. It watches
// nodes, pods and the budget, but not the Infrastructure: a topology change takes effect at the next event of those.
func Etcd(ctx context.Context, restConfig *rest.Config) error {
	inEtcd := cache.ByObject{Namespaces: map[string]cache.Config{scenario.EtcdNamespace: {}}}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: inEtcd, &policyv1.PodDisruptionBudget{}: inEtcd}}
	return run(ctx, EtcdUser, restConfig, options, func(manager ctrl.Manager) error {
		always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: GuardBudget}}}
		})
		g := &guards{kube: client.WithFieldOwner(manager.GetClient(), EtcdUser), direct: manager.GetAPIReader()}
		return ctrl.NewControllerManagedBy(manager).Named("guard").
			Watches(&corev1.Node{}, always).Watches(&corev1.Pod{}, always).Watches(&policyv1.PodDisruptionBudget{}, always).
			Complete(g)
	})
}

type guards struct {
	kube   client.Client
	direct client.Reader
}

// Reconcile implements reconcile.Reconciler.
func (g *guards) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	infrastructure := &configv1.Infrastructure{}
	if err := g.direct.Get(ctx, infrastructureKey, infrastructure); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the Infrastructure: %w", err)
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := g.kube.List(ctx, &nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("list nodes: %w", err)
	}
	if err := g.kube.List(ctx, &pods, client.InNamespace(scenario.EtcdNamespace), client.MatchingLabels{"app": guardApp}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list guards: %w", err)
	}
	mode := infrastructure.Status.ControlPlaneTopology
	if mode == "" {
		return reconcile.Result{}, errNoTopology
	}
	var err error
	if mode == configv1.SingleReplicaTopologyMode {
		err = g.remove(ctx, pods.Items)
	} else {
		err = g.guard(ctx, slices.DeleteFunc(nodes.Items, notOfControlPlane), pods.Items)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	return reconcile.Result{}, err
}

func notOfControlPlane(node corev1.Node) bool {
	_, master := node.Labels[scenario.MasterTaint]
	_, arbiter := node.Labels[arbiterRole]
	return !master && !arbiter
}

func (g *guards) remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := g.kube.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete guard %s: %w", pods[i].Name, err)
		}
	}
	budget := &policyv1.PodDisruptionBudget{}
	err := g.kube.Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: GuardBudget}, budget)
	if err == nil {
		err = g.kube.Delete(ctx, budget)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the budget of the guards: %w", err)
	}
	account := &corev1.ServiceAccount{}
	err = g.direct.Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardAccount}, account)
	if err == nil {
		err = g.kube.Delete(ctx, account)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the service account of the guards: %w", err)
	}
	return nil
}

func (g *guards) guard(ctx context.Context, nodes []corev1.Node, pods []corev1.Pod) error {
	if len(nodes) == 0 {
		return nil
	}
	if err := g.account(ctx); err != nil {
		return err
	}
	if err := g.budget(ctx, len(nodes)); err != nil {
		return err
	}
	for i := range nodes {
		if err := g.guardNode(ctx, &nodes[i], pods); err != nil {
			return err
		}
	}
	return nil
}

func (g *guards) account(ctx context.Context) error {
	account := &corev1.ServiceAccount{}
	err := g.direct.Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardAccount}, account)
	if apierrors.IsNotFound(err) {
		account.Namespace, account.Name, account.Labels = scenario.EtcdNamespace, guardAccount, map[string]string{"app": guardApp}
		err = g.kube.Create(ctx, account)
	}
	if err != nil {
		return fmt.Errorf("make the service account of the guards: %w", err)
	}
	return nil
}

// budget allows the eviction of one of several guards, and of the only one.
func (g *guards) budget(ctx context.Context, nodes int) error {
	want := intstr.FromInt(max(nodes-1, 0))
	live := &policyv1.PodDisruptionBudget{}
	err := g.kube.Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: GuardBudget}, live)
	switch {
	case apierrors.IsNotFound(err):
		err = g.kube.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: scenario.EtcdNamespace, Name: GuardBudget},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &want, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": guardApp}},
			},
		})
	case err == nil && (live.Spec.MinAvailable == nil || *live.Spec.MinAvailable != want):
		changed := live.DeepCopy()
		changed.Spec.MinAvailable = &want
		err = g.kube.Update(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("write the budget of the guards: %w", err)
	}
	return nil
}

// guardNode creates the guard of a node, and replaces one that has ended. A node that is cordoned or not Ready gets
// none; the etcd of a Ready one is assumed to run.
func (g *guards) guardNode(ctx context.Context, node *corev1.Node, pods []corev1.Pod) error {
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node.Name })
	if at >= 0 {
		pod := &pods[at]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
			return nil
		}
		if err := g.kube.Delete(ctx, pod); err != nil {
			return fmt.Errorf("delete guard %s: %w", pod.Name, client.IgnoreNotFound(err))
		}
		return nil // the deletion event triggers the creation
	}
	if node.Spec.Unschedulable || !embedded.NodeReady(node) {
		return nil
	}
	if err := g.kube.Create(ctx, guardPod(node.Name)); err != nil {
		return fmt.Errorf("create the guard of node %s: %w", node.Name, err)
	}
	return nil
}

func guardPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: scenario.EtcdNamespace, Name: guardPrefix + node, Labels: map[string]string{"app": guardApp},
			Annotations: map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`},
		},
		Spec: corev1.PodSpec{
			NodeName: node, PriorityClassName: "system-cluster-critical", ServiceAccountName: guardAccount, HostUsers: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](3), AutomountServiceAccountToken: ptr.To(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: guardApp, Image: "cluster-etcd-operator",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
				}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
						Scheme: corev1.URISchemeHTTPS, Port: intstr.FromInt32(guardPort), Path: "readyz",
					}},
					PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: 3,
				},
			}},
		},
	}
}
