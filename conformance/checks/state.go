// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// ErrRead is returned if a part of the cluster could not be read.
	ErrRead = errors.New("cannot read the cluster")
	// ErrForbidden is returned if the account lacks a permission.
	ErrForbidden = errors.New("a permission is missing")
	// ErrInconclusive is returned if the cluster prevents a check for a reason that the check is not about.
	ErrInconclusive = errors.New("the cluster prevents the check")
	// ErrNotPerformed is returned if a disruption was requested and did not happen.
	ErrNotPerformed = errors.New("the disruption did not happen")
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

// Read reads a cluster. The workloads are those of the given namespaces, by default PayloadNamespaces. Resources that
// are not served are recorded in Missing. Errors name every resource that could not be read, with the verb if a
// permission is missing.
func Read(ctx context.Context, kube client.Client, namespaces []string) (*State, error) {
	r := reader{ctx: ctx, kube: kube, state: &State{Missing: map[string]bool{}}}
	s, payload := r.state, newPayload(namespaces)
	inPayload := payload.has
	s.Infrastructure = one(&r, "infrastructures.config.openshift.io", "", "cluster", &configv1.Infrastructure{})
	s.Ingress = one(&r, "ingresses.config.openshift.io", "", "cluster", &configv1.Ingress{})
	s.IngressController = one(&r, "ingresscontrollers.operator.openshift.io", "openshift-ingress-operator", "default", &operatorv1.IngressController{})
	s.ClusterVersion = one(&r, "clusterversions.config.openshift.io", "", "version", &configv1.ClusterVersion{})
	s.Console = one(&r, "consoles.operator.openshift.io", "", "cluster", &operatorv1.Console{})
	s.Authentication = one(&r, "authentications.operator.openshift.io", "", "cluster", &operatorv1.Authentication{})
	s.Etcd = one(&r, "etcds.operator.openshift.io", "", "cluster", &operatorv1.Etcd{})
	s.Approver = one(&r, "configmaps", "openshift-cluster-machine-approver", "machine-approver-config", &corev1.ConfigMap{})
	s.ApproverOperator = one(&r, "clusteroperators.config.openshift.io", "", "machine-approver", &configv1.ClusterOperator{})

	var nodes corev1.NodeList
	var deployments appsv1.DeploymentList
	var statefulSets appsv1.StatefulSetList
	var daemonSets appsv1.DaemonSetList
	var pods corev1.PodList
	var budgets policyv1.PodDisruptionBudgetList
	r.list("nodes", &nodes)
	r.list("deployments.apps", &deployments)
	r.list("statefulsets.apps", &statefulSets)
	r.list("daemonsets.apps", &daemonSets)
	r.list("pods", &pods)
	r.list("poddisruptionbudgets.policy", &budgets)
	s.Nodes = nodes.Items
	s.Deployments = slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool { return !inPayload(d.Namespace) })
	s.StatefulSets = slices.DeleteFunc(statefulSets.Items, func(d appsv1.StatefulSet) bool { return !inPayload(d.Namespace) })
	s.DaemonSets = slices.DeleteFunc(daemonSets.Items, func(d appsv1.DaemonSet) bool { return !inPayload(d.Namespace) })
	s.Pods = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !inPayload(p.Namespace) })
	s.Budgets = slices.DeleteFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool { return !inPayload(b.Namespace) })
	s.Namespaces, s.Others = slices.Sorted(maps.Keys(payload.here)), slices.Sorted(maps.Keys(payload.others))
	machines := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineList"}}
	r.list("machines.machine.openshift.io", &machines)
	s.Machines = len(machines.Items)
	s.ControllerConfig = one(&r, "controllerconfigs.machineconfiguration.openshift.io", "", "machine-config-controller", &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "ControllerConfig"},
	})
	s.KubeletConfigs = r.untyped("kubeletconfigs.machineconfiguration.openshift.io", "KubeletConfigList")
	return s, errors.Join(r.errs...)
}

// reader collects all errors, so that a report names all missing permissions at once.
type reader struct {
	ctx   context.Context //nolint:containedctx // of the one call of Read
	kube  client.Client
	state *State
	errs  []error
}

// one returns nil if the object does not exist.
func one[T client.Object](r *reader, resource, namespace, name string, into T) T {
	var none T
	err := r.kube.Get(r.ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	switch {
	case err == nil:
		return into
	case meta.IsNoMatchError(err):
		r.state.Missing[resource] = true
		return none
	case apierrors.IsNotFound(err):
		return none
	}
	r.failed("get", resource, err)
	return none
}

func (r *reader) list(resource string, into client.ObjectList) {
	err := r.kube.List(r.ctx, into)
	// NotFound: the kind is no longer served, but the client has cached that it is.
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		r.state.Missing[resource] = true
		return
	}
	r.failed("list", resource, err)
}

func (r *reader) untyped(resource, kind string) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: kind})
	r.list(resource, list)
	return list.Items
}

func (r *reader) failed(verb, resource string, err error) {
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		r.errs = append(r.errs, fmt.Errorf("%w: %s %s: grant it, or choose checks that do not need it: %w", ErrForbidden, verb, resource, err))
	default:
		r.errs = append(r.errs, fmt.Errorf("%w: %s %s: %w", ErrRead, verb, resource, err))
	}
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

// Deployment returns nil if it does not exist.
func (s *State) Deployment(namespace, name string) *appsv1.Deployment {
	for i := range s.Deployments {
		if s.Deployments[i].Namespace == namespace && s.Deployments[i].Name == name {
			return &s.Deployments[i]
		}
	}
	return nil
}
