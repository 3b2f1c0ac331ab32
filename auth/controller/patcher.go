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
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// patcher patches the Authentication of the operator and the two Deployments.
type patcher struct {
	reader         client.Reader
	override       auth.OverridePolicy
	forceConflicts bool
	// authentication never forces; deployments does where that is asked for.
	authentication, deployments *apply.Applier
	topology                    manager.LastTopology
}

// found is what one look reads: the inputs of the decision, and the patched objects as they are. An object that does not
// exist is nil.
type found struct {
	inputs                            auth.Inputs
	authentication, server, apiServer *unstructured.Unstructured
}

// look is what manager.Controller calls. It is never run concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	f, err := p.gather(ctx)
	if err != nil {
		return nil, patch.Result{}, err
	}
	return f.authentication, together(p.steps(ctx, f)...), nil
}

// gather reads what the decision needs from the cache.
func (p *patcher) gather(ctx context.Context) (f found, err error) {
	f.inputs = auth.Inputs{Override: p.override, ForceConflicts: p.forceConflicts}
	if f.inputs.Cluster, err = p.topology.Read(ctx, p.reader); err != nil {
		return f, err
	}
	if _, f.inputs.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, p.reader, clusterVersionObject); err != nil {
		return f, err
	}
	if f.inputs.ControlPlaneNodes, err = nodes(ctx, p.reader); err != nil {
		return f, err
	}
	if f.server, f.inputs.OAuthServer, err = manager.Read[appsv1.Deployment](ctx, p.reader, serverObject); err != nil {
		return f, err
	}
	if f.apiServer, f.inputs.OAuthAPIServer, err = manager.Read[appsv1.Deployment](ctx, p.reader, apiServerObject); err != nil {
		return f, err
	}
	f.authentication, f.inputs.Authentication, err = manager.Read[operatorv1.Authentication](ctx, p.reader, authenticationObject)
	return f, err
}

// nodes lists the control-plane nodes; the cache holds no others.
func nodes(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodeObjects.GroupVersion().WithKind(nodeObjects.Kind + "List"))
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("reading the control-plane nodes: %w", err)
	}
	out := make([]corev1.Node, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &out[i]); err != nil {
			return nil, fmt.Errorf("decoding the node %s: %w", list.Items[i].GetName(), err)
		}
	}
	return out, nil
}
