// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
)

// Read reads a cluster. The workloads are those of the given namespaces, by default PayloadNamespaces. Resources that
// are not served are recorded in Missing. Errors name every resource that could not be read, with the verb if a
// permission is missing.
func Read(ctx context.Context, kube client.Client, namespaces []string) (*catalogue.State, error) {
	r := reader{ctx: ctx, kube: kube, state: &catalogue.State{Missing: map[string]bool{}}}
	s, payload := r.state, newPayload(namespaces)
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
	s.Deployments = slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool { return !payload.has(d.Namespace) })
	s.StatefulSets = slices.DeleteFunc(statefulSets.Items, func(d appsv1.StatefulSet) bool { return !payload.has(d.Namespace) })
	s.DaemonSets = slices.DeleteFunc(daemonSets.Items, func(d appsv1.DaemonSet) bool { return !payload.has(d.Namespace) })
	s.Pods = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !payload.has(p.Namespace) })
	s.Budgets = slices.DeleteFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool { return !payload.has(b.Namespace) })
	s.Namespaces, s.Others = slices.Sorted(maps.Keys(payload.here)), slices.Sorted(maps.Keys(payload.others))
	machines := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineList"}}
	r.list("machines.machine.openshift.io", &machines)
	s.Machines = len(machines.Items)
	s.ControllerConfig = one(&r, "controllerconfigs.machineconfiguration.openshift.io", "", "machine-config-controller", &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "ControllerConfig"},
	})
	kubeletConfigs := &unstructured.UnstructuredList{}
	kubeletConfigs.SetGroupVersionKind(schema.GroupVersionKind{Group: machineConfigGroup, Version: "v1", Kind: "KubeletConfigList"})
	r.list("kubeletconfigs."+machineConfigGroup, kubeletConfigs)
	s.KubeletConfigs = kubeletConfigs.Items
	return s, errors.Join(r.errs...)
}

// Changes returns how named values differ: "created", "written" or "deleted".
func Changes(before, after map[string]string) map[string]string {
	how := map[string]string{}
	for name, value := range after {
		if was, ok := before[name]; !ok {
			how[name] = "created"
		} else if was != value {
			how[name] = "written"
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			how[name] = "deleted"
		}
	}
	return how
}

// reader collects all errors, so that a report names all missing permissions at once.
type reader struct {
	ctx   context.Context //nolint:containedctx // of the one call of Read
	kube  client.Client
	state *catalogue.State
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

func (r *reader) failed(verb, resource string, err error) {
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		r.errs = append(r.errs, fmt.Errorf("%w: %s %s: grant it, or choose checks that do not need it: %w", catalogue.ErrForbidden, verb, resource, err))
	default:
		r.errs = append(r.errs, fmt.Errorf("%w: %s %s: %w", catalogue.ErrRead, verb, resource, err))
	}
}
