package controller

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

var words = apply.Words{
	Subject:     "The default IngressController",
	MadeBy:      "the ingress operator",
	Resource:    "ingresscontrollers.operator.openshift.io in namespace " + ingress.IngressControllerNamespace,
	WouldApply:  "the router would be pinned to the control plane",
	Progressing: ingress.ReasonRouterRollingOut,
}

// patcher patches IngressController/default.
type patcher struct {
	reader         client.Reader
	applier        *apply.Applier
	placement      ingress.PlacementSource
	forceConflicts bool
	topology       manager.LastTopology
}

// look is what manager.Controller calls. It is never run concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	live, inputs, err := p.gather(ctx)
	if err != nil {
		return nil, patch.Result{}, err
	}
	return live, p.patch(ctx, live, inputs), nil
}

// gather reads what the decision needs from the cache. live is nil when there is no default IngressController.
func (p *patcher) gather(ctx context.Context) (live *unstructured.Unstructured, inputs ingress.Inputs, err error) {
	inputs = ingress.Inputs{Placement: p.placement, ForceConflicts: p.forceConflicts}
	if inputs.Cluster, err = p.topology.Read(ctx, p.reader); err != nil {
		return nil, inputs, err
	}
	if _, inputs.Ingress, err = manager.Read[configv1.Ingress](ctx, p.reader, ingressObject); err != nil {
		return nil, inputs, err
	}
	if _, inputs.Router, err = manager.Read[appsv1.Deployment](ctx, p.reader, routerObject); err != nil {
		return nil, inputs, err
	}
	live, inputs.IngressController, err = manager.Read[operatorv1.IngressController](ctx, p.reader, controllerObject)
	return live, inputs, err
}

// patch brings the decision onto the cluster and says how it went.
func (p *patcher) patch(ctx context.Context, live *unstructured.Unstructured, inputs ingress.Inputs) patch.Result {
	decision := ingress.Decide(inputs)
	switch {
	case decision.Intent != nil:
		outcome, err := p.applier.Apply(ctx, live, decision.Intent)
		result := words.Result(ctx, ingress.Name, outcome, err)
		if result == nil {
			observed := ingress.Observe(inputs)
			result = &observed
		}
		if decision.Result != nil {
			return patch.Worst(*decision.Result, *result)
		}
		return *result
	case decision.Release:
		outcome, err := p.applier.Release(ctx, live, apply.ReleaseOptions{Restore: decision.KeepReplaced, Leave: decision.Leave})
		if result := words.Released(ingress.Name, *decision.Result, outcome, err); result != nil {
			return *result
		}
	}
	return *decision.Result
}
