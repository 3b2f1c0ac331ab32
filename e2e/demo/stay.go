// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// stay keeps the cluster up and prints changes until ctx ends.
func (j *job) stay(ctx context.Context) error {
	if err := j.env.UseRealMinReadySeconds(ctx); err != nil {
		return err
	}
	j.heading("The cluster stays up until Ctrl-C")
	j.printf("  export KUBECONFIG=%s", j.env.Cluster.KubeconfigPath())
	j.printf("  kubectl get pods -A -o wide")
	j.printf("  kubectl patch infrastructure cluster --subresource status --type merge -p '{\"status\":{\"controlPlaneTopology\":\"HighlyAvailable\",\"infrastructureTopology\":\"HighlyAvailable\"}}'")
	j.printf("  Log of the controllers: %s", filepath.Join(j.env.Cluster.Dir(), programs.KubectlSNO.Name+".log"))
	j.printf("")

	lines := make(chan string, 64)
	watching, err := j.watch(ctx, lines)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- watching.Start(ctx) }()
	if j.options.OnReady != nil {
		j.options.OnReady(j.env.Cluster)
	}
	for {
		select {
		case line := <-lines:
			j.printf("  %s  %s", j.paint(dim, stamp()), line)
		case err := <-ended:
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				j.printf("\nStopping the cluster")
				return nil
			}
			return fmt.Errorf("watch the cluster: %w", err)
		}
	}
}

// watch describes every relevant object in one line, and sends the line when it changes.
func (j *job) watch(ctx context.Context, lines chan<- string) (cache.Cache, error) {
	scheme, err := embedded.NewScheme()
	if err != nil {
		return nil, err
	}
	watching, err := cache.New(j.env.Cluster.RESTConfig(), cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	for _, object := range []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &configv1.Infrastructure{}, &configv1.ClusterVersion{},
		&operatorv1.IngressController{}, &operatorv1.Console{}, &operatorv1.Authentication{}, &appsv1.Deployment{},
	} {
		informer, err := watching.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
		send := func(text string) {
			if text == "" {
				return
			}
			select {
			case lines <- text:
			case <-ctx.Done():
			}
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { send(describe(obj)) },
			UpdateFunc: func(before, after any) {
				if text := describe(after); text != describe(before) {
					send(text)
				}
			},
			DeleteFunc: func(obj any) {
				if text := describe(obj); text != "" {
					send(text + " (deleted)")
				}
			},
		}); err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
	}
	return watching, nil
}

// describe returns an object in one line without values that change by themselves; empty if it is not relevant.
func describe(obj any) string {
	switch o := obj.(type) {
	case *corev1.Pod:
		if !strings.HasPrefix(o.Namespace, "openshift-") || o.Namespace == scenario.ControlPlaneNamespace {
			return ""
		}
		node := o.Spec.NodeName
		if node == "" {
			node = "no node yet"
		}
		return fmt.Sprintf("pod %s: %s on %s", o.Name, o.Status.Phase, node)
	case *corev1.Node:
		var roles, taints []string
		for _, role := range []string{"master", "arbiter", "worker"} {
			if _, ok := o.Labels["node-role.kubernetes.io/"+role]; ok {
				roles = append(roles, role)
			}
		}
		for _, taint := range o.Spec.Taints {
			taints = append(taints, taint.ToString())
		}
		return fmt.Sprintf("node %s: roles %s, taints [%s]", o.Name, strings.Join(roles, "+"), strings.Join(taints, " "))
	case *configv1.Infrastructure:
		return fmt.Sprintf("infrastructure %s: controlPlaneTopology %s, infrastructureTopology %s", o.Name,
			o.Status.ControlPlaneTopology, o.Status.InfrastructureTopology)
	case *operatorv1.IngressController:
		text := fmt.Sprintf("ingresscontroller %s:", o.Name)
		if o.Spec.Replicas != nil {
			text += fmt.Sprintf(" replicas %d,", *o.Spec.Replicas)
		}
		placement := "not placed"
		if p := o.Spec.NodePlacement; p != nil && p.NodeSelector != nil {
			placement = "placed on " + strings.TrimSuffix(metav1.FormatLabelSelector(p.NodeSelector), "=")
		}
		return text + " " + placement + condition(framework.Ingress, o.Status.Conditions)
	case *operatorv1.Console:
		return fmt.Sprintf("console %s: %s%s", o.Name, o.Spec.ManagementState, condition(framework.Console, o.Status.Conditions))
	case *operatorv1.Authentication:
		return fmt.Sprintf("authentication %s: %s%s", o.Name, o.Spec.ManagementState, condition(framework.Auth, o.Status.Conditions))
	case *configv1.ClusterVersion:
		entries := make([]string, 0, len(o.Spec.Overrides))
		for _, entry := range o.Spec.Overrides {
			entries = append(entries, fmt.Sprintf("%s %s/%s unmanaged: %t", entry.Kind, entry.Namespace, entry.Name, entry.Unmanaged))
		}
		return fmt.Sprintf("clusterversion %s: overrides [%s]", o.Name, strings.Join(entries, ", "))
	case *appsv1.Deployment:
		if o.Spec.Replicas == nil {
			return ""
		}
		return fmt.Sprintf("deployment %s: %d of %d ready", o.Name, o.Status.ReadyReplicas, *o.Spec.Replicas)
	}
	return ""
}

func condition(module framework.Module, conditions []operatorv1.OperatorCondition) string {
	for _, c := range conditions {
		if c.Type == module.ConditionType() {
			return fmt.Sprintf(", %s=%s (%s)", c.Type, c.Status, c.Reason)
		}
	}
	return ""
}
