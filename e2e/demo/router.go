// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
)

const (
	routerDeployment = "router-default"
	routerLabel      = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"

	poll = 50 * time.Millisecond
	// settleTimeout limits one rollout or rescheduling, which takes about a second on simulated nodes. It expires if the
	// scheduler finds no node.
	settleTimeout = 2 * time.Minute
)

type place struct {
	Pod, Node, Pool string
	uid             types.UID
}

type router struct {
	kube client.Client
}

func (r router) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.kube.List(ctx, &pods, client.InNamespace(scenario.RouterNamespace), client.MatchingLabels{routerLabel: scenario.DefaultIngressController})
	if err != nil {
		return nil, fmt.Errorf("list the router's pods: %w", err)
	}
	return pods.Items, nil
}

// settled waits until the router's rollout has ended and all its pods run, except those that wait for a node. Pod gone
// must have been replaced. It returns the places of the pods, or an error with the reasons of Pending pods.
func (r router) settled(ctx context.Context, gone types.UID, waiting int32) ([]place, error) {
	var places []place
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		var deployment appsv1.Deployment
		err := r.kube.Get(ctx, client.ObjectKey{Namespace: scenario.RouterNamespace, Name: routerDeployment}, &deployment)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read the router: %w", err)
		}
		pods, err := r.pods(ctx)
		if err != nil {
			return false, err
		}
		want := int(*deployment.Spec.Replicas)
		status := deployment.Status
		if status.ObservedGeneration < deployment.Generation || int(status.UpdatedReplicas) != want || int(status.AvailableReplicas) != want-int(waiting) || len(pods) != want {
			return false, nil
		}
		places = places[:0]
		for i := range pods {
			pod := &pods[i]
			if pod.Spec.NodeName == "" && waiting > 0 {
				continue
			}
			if pod.UID == gone || pod.DeletionTimestamp != nil || !ready(pod) {
				return false, nil
			}
			pool, err := r.poolOf(ctx, pod.Spec.NodeName)
			if err != nil {
				return false, err
			}
			places = append(places, place{Pod: pod.Name, Node: pod.Spec.NodeName, Pool: pool, uid: pod.UID})
		}
		return len(places) == want-int(waiting), nil
	})
	if err == nil {
		slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.Pod, b.Pod) })
		return places, nil
	}
	if pods, podsErr := r.pods(context.WithoutCancel(ctx)); podsErr == nil {
		err = errors.Join(err, pending(pods))
	}
	return nil, fmt.Errorf("the router did not settle within %s: %w", settleTimeout, err)
}

// pending returns the scheduler's reasons for pods that cannot be scheduled.
func pending(pods []corev1.Pod) error {
	var errs []error
	for i := range pods {
		for _, c := range pods[i].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				errs = append(errs, fmt.Errorf("pod %s is Pending: %s", pods[i].Name, c.Message))
			}
		}
	}
	return errors.Join(errs...)
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (r router) poolOf(ctx context.Context, name string) (string, error) {
	var node corev1.Node
	if err := r.kube.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return "", fmt.Errorf("read node %q: %w", name, err)
	}
	if _, ok := node.Labels[masterLabel]; ok {
		return string(scenario.PoolMaster), nil
	}
	return string(scenario.PoolWorker), nil
}

func (r router) restart(ctx context.Context, at place) ([]place, error) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = scenario.RouterNamespace, at.Pod
	if err := r.kube.Delete(ctx, pod, client.Preconditions{UID: &at.uid}); err != nil {
		return nil, fmt.Errorf("delete pod %s: %w", at.Pod, err)
	}
	return r.settled(ctx, at.uid, 0)
}

// check compares the places of the routers with the scenario: their number, their pool, and that they are on different
// nodes.
func check(s scenario.Scenario, places []place) error {
	if len(places) != int(s.Replicas) {
		return fmt.Errorf("%w: %d router(s), wanted: %d", ErrVerificationFailed, len(places), s.Replicas)
	}
	taken := map[string]string{}
	for _, p := range places {
		if s.Pool == scenario.PoolMaster && p.Pool != string(scenario.PoolMaster) {
			return fmt.Errorf("%w: %s is on %s, which is not a control-plane node", ErrVerificationFailed, p.Pod, p.Node)
		}
		if other, ok := taken[p.Node]; ok {
			return fmt.Errorf("%w: %s and %s are both on %s", ErrVerificationFailed, other, p.Pod, p.Node)
		}
		taken[p.Node] = p.Pod
	}
	return nil
}

func offPool(places []place, pool scenario.Pool) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.Pool != string(pool) })
}
