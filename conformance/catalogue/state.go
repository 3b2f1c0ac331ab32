// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// State is the part of a cluster that checks read.
type State struct {
	Infrastructure *configv1.Infrastructure
	Ingress        *configv1.Ingress
	// IngressController is openshift-ingress-operator/default. Objects that do not exist are nil.
	IngressController *operatorv1.IngressController
	ClusterVersion    *configv1.ClusterVersion
	Console           *operatorv1.Console
	Authentication    *operatorv1.Authentication
	Etcd              *operatorv1.Etcd
	Nodes             []corev1.Node
	// The workloads are those of the namespaces of the release payload.
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	Pods         []corev1.Pod
	Budgets      []policyv1.PodDisruptionBudget
	Approver     *corev1.ConfigMap
	// ApproverOperator is the ClusterOperator of the machine approver.
	ApproverOperator *configv1.ClusterOperator
	// Machines is their number; 0 also if the kind is not served.
	Machines       int
	KubeletConfigs []unstructured.Unstructured
	// ControllerConfig is that of a machine-config operator, whose controller then reads KubeletConfigs; without content.
	ControllerConfig *metav1.PartialObjectMetadata
	// Pool is that of the control plane; nil also if no check of the run needs it.
	Pool *Pool
	// Missing are the resources that the cluster does not serve, such as consoles without that capability.
	Missing map[string]bool
	// Namespaces are those of the release payload that contain objects. Others begin with openshift- and do not count.
	Namespaces, Others []string
}

// Pool contains the fields of a MachineConfigPool and of its rendered MachineConfig that checks need. The rest of the
// MachineConfig is not kept, because it contains the cluster's pull secret.
type Pool struct {
	Name   string
	Labels map[string]string
	// Rendered is status.configuration.name; empty if nothing is rendered.
	Rendered string
	// ShutdownGracePeriod is the value in the rendered kubelet configuration, such as 60s, or empty.
	ShutdownGracePeriod string
}

// DeepCopy copies everything that controls change.
func (s *State) DeepCopy() *State {
	c := &State{
		Infrastructure: s.Infrastructure.DeepCopy(), Ingress: s.Ingress.DeepCopy(), IngressController: s.IngressController.DeepCopy(),
		ClusterVersion: s.ClusterVersion.DeepCopy(), Console: s.Console.DeepCopy(), Authentication: s.Authentication.DeepCopy(), Etcd: s.Etcd.DeepCopy(),
		Approver: s.Approver.DeepCopy(), ApproverOperator: s.ApproverOperator.DeepCopy(),
		Nodes: copies(s.Nodes), Deployments: copies(s.Deployments), StatefulSets: copies(s.StatefulSets), DaemonSets: copies(s.DaemonSets), Pods: copies(s.Pods),
		Budgets:        copies(s.Budgets),
		Machines:       s.Machines,
		KubeletConfigs: copies(s.KubeletConfigs), ControllerConfig: s.ControllerConfig.DeepCopy(),
		Missing: s.Missing, Namespaces: slices.Clone(s.Namespaces), Others: slices.Clone(s.Others),
	}
	if s.Pool != nil {
		c.Pool = ptr.To(*s.Pool)
		c.Pool.Labels = maps.Clone(s.Pool.Labels)
	}
	return c
}

func copies[T any, P interface {
	*T
	DeepCopyInto(*T)
}](items []T) []T {
	out := make([]T, len(items))
	for i := range items {
		P(&items[i]).DeepCopyInto(&out[i])
	}
	return out
}

// where returns the items that match, not copies of them.
func where[T any](items []T, match func(*T) bool) []*T {
	var all []*T
	for i := range items {
		if match(&items[i]) {
			all = append(all, &items[i])
		}
	}
	return all
}

// Deployment returns nil if it does not exist.
func (s *State) Deployment(namespace, name string) *appsv1.Deployment {
	for i := range s.Deployments {
		if d := &s.Deployments[i]; d.Namespace == namespace && d.Name == name {
			return d
		}
	}
	return nil
}

// Operands are the Deployments with pods that acts disrupt.
func (s *State) Operands() []appsv1.Deployment {
	var all []appsv1.Deployment
	for _, name := range slices.Concat(routers(), consoles(), oauths()) {
		if d := s.Deployment(name.Namespace, name.Name); d != nil && Replicas(d) > 0 {
			all = append(all, *d)
		}
	}
	return all
}

// Unsettled returns why the rollout of a Deployment is not complete, or "".
func (s *State) Unsettled(namespace, name string) string {
	d := s.Deployment(namespace, name)
	if d == nil {
		return "it does not exist"
	}
	want, status := Replicas(d), d.Status
	if status.ObservedGeneration >= d.Generation && status.Replicas == want && status.UpdatedReplicas == want && status.AvailableReplicas == want {
		return ""
	}
	for _, pod := range s.PodsOf(d) {
		if why := Unschedulable(&pod); why != "" {
			return fmt.Sprintf("%d of %d pods are available; a pod is not scheduled: %s", status.AvailableReplicas, want, why)
		}
	}
	return fmt.Sprintf("%d of %d pods are available, %d of them of the current template", status.AvailableReplicas, want, status.UpdatedReplicas)
}

// PodsOf returns the pods that a Deployment selects.
func (s *State) PodsOf(d *appsv1.Deployment) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.Pods), func(pod corev1.Pod) bool {
		return pod.Namespace != d.Namespace || !selects(d.Spec.Selector, pod.Labels)
	})
}

// Node returns nil if it does not exist.
func (s *State) Node(name string) *corev1.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}
