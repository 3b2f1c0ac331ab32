// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

var messages = apply.Messages{
	Subject:           "The default IngressController",
	Creator:           "the ingress operator",
	Resource:          "ingresscontrollers.operator.openshift.io in namespace " + ingress.IngressControllerNamespace,
	WouldApply:        "the router would be pinned to the control plane",
	ProgressingReason: decision.ReasonRouterRollingOut,
}

type patcher struct {
	reader         client.Reader
	applier        *apply.Applier
	placement      ingress.PlacementSource
	forceConflicts bool
}

func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	live, inputs, err := p.gather(ctx, cluster)
	if err != nil {
		return nil, patch.Result{}, err
	}
	return live, p.patch(ctx, live, inputs), nil
}

// gather reads the inputs. live is nil if there is no default IngressController.
func (p *patcher) gather(ctx context.Context, cluster *topology.Cluster) (live *unstructured.Unstructured, inputs decision.Inputs, err error) {
	inputs = decision.Inputs{Cluster: cluster, Placement: p.placement, ForceConflicts: p.forceConflicts}
	if _, inputs.Ingress, err = controller.Read[configv1.Ingress](ctx, p.reader, ingressObject); err != nil {
		return nil, inputs, err
	}
	if _, inputs.Router, err = controller.Read[appsv1.Deployment](ctx, p.reader, routerObject); err != nil {
		return nil, inputs, err
	}
	live, inputs.IngressController, err = controller.Read[operatorv1.IngressController](ctx, p.reader, controllerObject)
	return live, inputs, err
}

func (p *patcher) patch(ctx context.Context, live *unstructured.Unstructured, inputs decision.Inputs) patch.Result {
	step := decision.Decide(inputs).IngressController
	result, _ := p.applier.ApplyStep(ctx, live, step, messages)
	if step.Intent == nil {
		return *result
	}
	if result == step.Result { // the intent is in force
		observed := decision.Observe(inputs)
		result = &observed
	}
	if step.Result != nil { // of a part that is not applied
		return patch.Worst(*step.Result, *result)
	}
	return *result
}
