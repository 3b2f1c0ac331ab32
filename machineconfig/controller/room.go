package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
)

// room adds to the inputs what it takes to tell whether the pods of a node fit elsewhere: everything that runs.
func (n *nodes) room(ctx context.Context, in machineconfig.Inputs) (machineconfig.Inputs, error) {
	in.Pods = []corev1.Pod{}
	pages := pager.New(pager.SimplePageFunc(func(opts metav1.ListOptions) (runtime.Object, error) {
		return n.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, opts)
	}))
	pages.PageSize = podsAtOnce
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if pod, ok := o.(*corev1.Pod); ok {
			pod.ManagedFields = nil
			in.Pods = append(in.Pods, *pod)
		}
		return nil
	})
	if err != nil {
		return in, fmt.Errorf("reading every pod: %w", err)
	}
	budgets, err := n.kube.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return in, fmt.Errorf("reading every PodDisruptionBudget: %w", err)
	}
	sets, err := n.kube.AppsV1().ReplicaSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return in, fmt.Errorf("reading every ReplicaSet: %w", err)
	}
	stateful, err := n.kube.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return in, fmt.Errorf("reading every StatefulSet: %w", err)
	}
	in.Budgets, in.ReplicaSets, in.StatefulSets = nonNil(budgets.Items), nonNil(sets.Items), nonNil(stateful.Items)
	return in, nil
}

// podsOf reads the pods of one node.
func podsOf(ctx context.Context, live client.Reader, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := live.List(ctx, pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("reading the pods of node %s: %w", node, err)
	}
	return nonNil(pods.Items), nil
}

// nonNil tells a list that was read and is empty from one that was not read.
func nonNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
