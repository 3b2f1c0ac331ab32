// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubectl "k8s.io/kubectl/pkg/drain"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// MachineConfigUser is the user and field manager of the machine-config operator.
	MachineConfigUser = "machine-config-controller"

	topologyAnnotation = "machineconfiguration.openshift.io/controlPlaneTopology"
	desiredAnnotation  = "machineconfiguration.openshift.io/desiredDrain"
	appliedAnnotation  = "machineconfiguration.openshift.io/lastAppliedDrain"

	// drainTimeout bounds one attempt to drain a node, and drainInterval is the time between two.
	drainTimeout, drainInterval = time.Minute, time.Second
)

var errNoTopology = errors.New("the control-plane topology is not set")

// MachineConfig is the part of the stock machine-config operator that takes nodes out of service (U-MCO-1, U-MCO-2). It
// writes the topology onto every node, and cordons and drains a node that requests it. If the node's annotation is
// SingleReplica, it acknowledges the request at once; a real daemon of such a node requests none.
func MachineConfig(ctx context.Context, restConfig *rest.Config) error {
	return run(ctx, MachineConfigUser, restConfig, cache.Options{}, func(manager ctrl.Manager) error {
		clientset, err := kubernetes.NewForConfig(restConfig)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		d := &nodeController{kube: client.WithFieldOwner(manager.GetClient(), MachineConfigUser), clientset: clientset}
		return ctrl.NewControllerManagedBy(manager).Named("node").For(&corev1.Node{}).
			Watches(&configv1.Infrastructure{}, handler.EnqueueRequestsFromMapFunc(d.allNodes)).
			Complete(d)
	})
}

type nodeController struct {
	kube      client.Client
	clientset kubernetes.Interface
}

func (d *nodeController) allNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	if err := d.kube.List(ctx, &nodes); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list nodes")
		return nil
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler for one node.
func (d *nodeController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := d.kube.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	infrastructure := &configv1.Infrastructure{}
	if err := d.kube.Get(ctx, infrastructureKey, infrastructure); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read the Infrastructure: %w", err)
	}
	// An empty topology keeps the previous annotation.
	if mode := string(infrastructure.Status.ControlPlaneTopology); mode != "" && node.Annotations[topologyAnnotation] != mode {
		if err := d.annotate(ctx, node, topologyAnnotation, mode); err != nil {
			return reconcile.Result{}, err
		}
	}
	return d.answer(ctx, node)
}

// answer does what a node requests and records it in the node's annotation. What is not possible yet is retried.
func (d *nodeController) answer(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	desired := node.Annotations[desiredAnnotation]
	if desired == "" || desired == node.Annotations[appliedAnnotation] {
		return reconcile.Result{}, nil
	}
	helper := &kubectl.Helper{
		Ctx: ctx, Client: d.clientset, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Timeout: drainTimeout, Out: io.Discard, ErrOut: io.Discard,
	}
	verb, _, _ := strings.Cut(desired, "-")
	single := node.Annotations[topologyAnnotation] == string(configv1.SingleReplicaTopologyMode)
	var err error
	switch {
	case verb == "uncordon":
		err = kubectl.RunCordonOrUncordon(helper, node.DeepCopy(), false)
	case verb == "drain" && !single:
		if err = kubectl.RunCordonOrUncordon(helper, node.DeepCopy(), true); err == nil {
			err = kubectl.RunNodeDrain(helper, node.Name)
		}
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "The node is not ready for its restart", "asked", desired)
		return reconcile.Result{RequeueAfter: drainInterval}, nil
	}
	return reconcile.Result{}, d.annotate(ctx, node, appliedAnnotation, desired)
}

func (d *nodeController) annotate(ctx context.Context, node *corev1.Node, key, value string) error {
	patch := client.MergeFrom(node.DeepCopy())
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
	if err := d.kube.Patch(ctx, node, patch); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write annotation %s of node %s: %w", key, node.Name, err)
	}
	return nil
}
