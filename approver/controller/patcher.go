// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

type patcher struct {
	env                 controller.Environment
	mode                decision.Mode
	deployment, version *apply.Applier
	config              client.Client // writes the ConfigMap
}

func newPatcher(env controller.Environment, mode decision.Mode) *patcher {
	p := &patcher{env: env, mode: mode, config: env.Client}
	if env.Options.DryRun {
		p.config = client.NewDryRunClient(env.Client)
	}
	p.deployment = env.Applier(approver.Name, apply.Overridable{Field: decision.FieldReplicas, Manager: overrides.ClusterVersionOperator})
	p.version = env.Applier(approver.Name)
	p.deployment.ForceConflicts, p.version.ForceConflicts = false, false // the decision covers conflicts
	return p
}

type gathered struct {
	inputs                                decision.Inputs
	operator, version, deployment, config *unstructured.Unstructured
}

func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	g, err := p.gather(ctx, cluster)
	if err != nil {
		return nil, patch.Result{}, err
	}
	d := decision.Decide(g.inputs)
	if d.Result == nil {
		return g.operator, decision.Observe(g.inputs), nil
	}
	config := p.writeConfig(ctx, g.config, d)
	deployment, _ := p.deployment.ApplyStep(ctx, g.deployment, d.Deployment, deploymentMessages)
	version, _ := p.version.ApplyStep(ctx, g.version, d.ClusterVersion, versionMessages)
	written := cmp.Or(config, deployment, version)
	result := *cmp.Or(written, d.Result)
	if written == d.Result { // the write succeeded
		result.After = controller.RequeueDelay
	}
	return g.operator, result, ctx.Err()
}

// gather reads the ClusterVersion last: the resourceVersion of the Deployment does not prove that the override is still
// observed.
func (p *patcher) gather(ctx context.Context, cluster *topology.Cluster) (g gathered, err error) {
	in, live, errs := &g.inputs, p.env.Live, [5]error{}
	in.Cluster, in.Mode = cluster, p.mode
	in.Machines, errs[0] = p.machines(ctx)
	g.operator, _, errs[1] = controller.Read[configv1.ClusterOperator](ctx, live, operatorObject)
	g.config, in.ConfigMap, errs[2] = controller.Read[corev1.ConfigMap](ctx, live, configObject)
	g.deployment, in.Deployment, errs[3] = controller.Read[appsv1.Deployment](ctx, live, deploymentObject)
	g.version, in.ClusterVersion, errs[4] = controller.Read[configv1.ClusterVersion](ctx, live, versionObject)
	return g, errors.Join(errs[:]...)
}

// machines reads all kinds of Machine. When another kind is served, the process restarts its controllers.
func (p *patcher) machines(ctx context.Context) (approver.MachinePresence, error) {
	for _, o := range machineObjects {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
		switch err := p.env.Live.List(ctx, list, client.Limit(1)); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return approver.MachinesUnknown, fmt.Errorf("reading whether there is any %s: %w", o.GroupKind(), err)
		case len(list.Items) > 0:
			return approver.MachinesPresent, nil
		}
	}
	return approver.MachinesAbsent, nil
}

var (
	configMessages = apply.Messages{
		Subject: "The configuration of the stock approver", Creator: "this module", ProgressingReason: decision.ReasonRestarting,
		Resource:   "configmaps in namespace " + decision.Namespace,
		WouldApply: "the node-client flow would be disabled in the configuration of the stock approver",
	}
	deploymentMessages = apply.Messages{
		Subject: "The stock approver", Creator: "the cluster-version-operator", ProgressingReason: decision.ReasonRestarting,
		Resource: "deployments.apps in namespace " + decision.Namespace, WouldApply: "the stock approver would be restarted or turned off",
	}
	versionMessages = apply.Messages{
		Subject: "The ClusterVersion", Creator: "the installer", ProgressingReason: decision.ReasonTakingOver,
		Resource: "clusterversions.config.openshift.io", WouldApply: "an override for the stock approver would be set",
		OwnedByOther: func(...string) *patch.Result { return overrides.OwnedByOther(decision.OverrideSubject) },
	}
)

// writeConfig does not use patch/apply, because most of the text has other owners. It returns nil without a write.
func (p *patcher) writeConfig(ctx context.Context, live *unstructured.Unstructured, d decision.Decision) *patch.Result {
	var err error
	write := d.Config
	switch {
	case write.Intent != nil:
		opts := []client.ApplyOption{client.FieldOwner(decision.FieldOwner)}
		if !write.Create {
			opts = append(opts, client.ForceOwnership)
		}
		err = p.config.Apply(ctx, write.Intent, opts...)
	case write.Delete:
		err = p.config.Delete(ctx, live.DeepCopy(), client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())})
	case write.Release:
		var body []byte
		if body, err = json.Marshal(map[string]any{
			"metadata": map[string]any{
				"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "annotations": map[string]any{decision.EditAnnotation: nil},
			},
			"data": map[string]any{decision.ConfigKey: write.Text},
		}); err == nil {
			err = p.config.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(write.NewOwner))
		}
	default:
		return nil
	}
	switch {
	case err != nil:
		p.env.Metrics.RecordApply(approver.Name, apply.Failed)
		return configMessages.Failed(approver.Name, cmp.Or(apply.StaleOrGone(err), err))
	case p.env.Options.DryRun:
		p.env.Metrics.RecordApply(approver.Name, apply.WouldApply)
		if write.Intent == nil {
			return configMessages.Released(approver.Name, *d.Result, apply.Outcome{Kind: apply.WouldRelease}, nil)
		}
		return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: " + configMessages.WouldApply}
	}
	p.env.Metrics.RecordApply(approver.Name, apply.Applied)
	logr.FromContextOrDiscard(ctx).Info("Configuration of the stock approver written", "reason", d.Result.Reason)
	return d.Result
}
