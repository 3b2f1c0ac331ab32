// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

var overrideMessages = apply.Messages{
	Subject:    "The configuration of the authentication operator",
	Creator:    "the installation",
	Resource:   "authentications.operator.openshift.io",
	WouldApply: "the override would be set",
}

func deploymentMessages(o controller.Object) apply.Messages {
	deployment := "Deployment " + o.Key().String()
	return apply.Messages{
		Subject:    "The " + deployment,
		Creator:    "the authentication operator",
		Resource:   "deployments.apps in namespace " + o.Namespace,
		WouldApply: "the " + deployment + " would get the shape of the topology",
	}
}

// patcher patches the Authentication, never with force, and the two Deployments.
type patcher struct {
	reader                      client.Reader
	override                    decision.OverridePolicy
	force                       bool
	authentication, deployments *apply.Applier
}

func newPatcher(env controller.Environment, override decision.OverridePolicy) *patcher {
	p := &patcher{
		reader: env.Reader, override: override, force: env.Options.ForceConflicts,
		authentication: env.Applier(auth.Name), deployments: env.Applier(auth.Name),
	}
	p.authentication.ForceConflicts = false
	return p
}

func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	in := decision.Inputs{Cluster: cluster, Override: p.override, ForceConflicts: p.force}
	var authentication, server, apiServer *unstructured.Unstructured
	var err error
	if _, in.ClusterVersion, err = controller.Read[configv1.ClusterVersion](ctx, p.reader, clusterVersionObject); err != nil {
		return nil, patch.Result{}, err
	}
	if in.ControlPlaneNodes, err = nodes(ctx, p.reader); err != nil {
		return nil, patch.Result{}, err
	}
	if server, in.OAuthServer, err = controller.Read[appsv1.Deployment](ctx, p.reader, serverObject); err != nil {
		return nil, patch.Result{}, err
	}
	if apiServer, in.OAuthAPIServer, err = controller.Read[appsv1.Deployment](ctx, p.reader, apiServerObject); err != nil {
		return nil, patch.Result{}, err
	}
	if authentication, in.Authentication, err = controller.Read[operatorv1.Authentication](ctx, p.reader, authenticationObject); err != nil {
		return nil, patch.Result{}, err
	}

	decided := decision.Decide(in)
	override, _ := p.authentication.ApplyStep(ctx, authentication, decided.Override, overrideMessages)
	serverResult, _ := p.deployments.ApplyStep(ctx, server, decided.OAuthServer, deploymentMessages(serverObject))
	apiServerResult, _ := p.deployments.ApplyStep(ctx, apiServer, decided.OAuthAPIServer, deploymentMessages(apiServerObject))
	return authentication, patch.Combine(override, serverResult, apiServerResult), nil
}

// nodes returns the control-plane nodes, because the cache has no others.
func nodes(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	live, list := &unstructured.UnstructuredList{}, &corev1.NodeList{}
	live.SetGroupVersionKind(nodeObjects.GroupVersion().WithKind(nodeObjects.Kind + "List"))
	if err := reader.List(ctx, live); err != nil {
		return nil, fmt.Errorf("reading the control-plane nodes: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.UnstructuredContent(), list); err != nil {
		return nil, fmt.Errorf("decoding the control-plane nodes: %w", err)
	}
	return list.Items, nil
}
