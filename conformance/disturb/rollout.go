// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/catalogue"
)

// rolloutAnnotation is what kubectl rollout restart writes.
const rolloutAnnotation = "kubectl.kubernetes.io/restartedAt"

// rollOut restarts the rollouts of all operands at the same time, then removes the annotation with a second rollout.
func (d *Disturber) rollOut(ctx context.Context) (*catalogue.Disruption, error) {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	rolled, err := d.disrupt(ctx, "Rolling out every operand", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
		return nil, d.annotateTemplates(ctx, all, func(*appsv1.Deployment) *string { return &now })
	})
	back, undone := d.revertRollout(ctx, rolled)
	if err := errors.Join(err, undone); err != nil {
		return nil, err
	}
	return merged(rolled, back), nil
}

// revertRollout restores the annotations of the pod templates. It does not wait for operands whose rollout failed, and
// after an interruption for none.
func (d *Disturber) revertRollout(ctx context.Context, rolled *catalogue.Disruption) (*catalogue.Disruption, error) {
	before := func(operand *appsv1.Deployment) *string {
		if was := d.Before.Deployment(operand.Namespace, operand.Name); was != nil {
			if value, had := was.Spec.Template.Annotations[rolloutAnnotation]; had {
				return &value
			}
		}
		return nil
	}
	if interrupted := ctx.Err(); interrupted != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Target.Times.Cleanup)
		defer cancel()
		return nil, errors.Join(interrupted, d.annotateTemplates(ctx, d.Before.Operands(), before))
	}
	failed := map[string]string{}
	if rolled != nil {
		for _, o := range rolled.Operands {
			failed[o.Name] = o.Failure
		}
	}
	return d.disrupt(ctx, "Removing the annotation of the rollouts", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
		return failed, d.annotateTemplates(ctx, all, before)
	})
}

func (d *Disturber) annotateTemplates(ctx context.Context, all []appsv1.Deployment, value func(*appsv1.Deployment) *string) error {
	for i := range all {
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]*string{rolloutAnnotation: value(&all[i])}},
		}}})
		if err != nil {
			return err
		}
		_, err = d.Set.AppsV1().Deployments(all[i].Namespace).Patch(ctx, all[i].Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-rollout"})
		if err != nil {
			return fmt.Errorf("roll out %s: %w", catalogue.NameOf(&all[i]), err)
		}
	}
	return nil
}

// merged joins two disruptions of the same Deployments: the first failure, the longer downtime.
func merged(one, another *catalogue.Disruption) *catalogue.Disruption {
	both := &catalogue.Disruption{Operands: slices.Clone(one.Operands)}
	for _, o := range another.Operands {
		i := slices.IndexFunc(both.Operands, func(b catalogue.OperandDisruption) bool { return b.Name == o.Name })
		if i < 0 {
			both.Operands = append(both.Operands, o)
			continue
		}
		both.Operands[i].Failure = cmp.Or(both.Operands[i].Failure, o.Failure)
		both.Operands[i].Downtime = max(both.Operands[i].Downtime, o.Downtime)
	}
	return both
}
