// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"

	operatorv1 "github.com/openshift/api/operator/v1"
	configlisters "github.com/openshift/client-go/config/listers/config/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	"github.com/openshift/library-go/pkg/operator/resource/resourcemerge"
	"github.com/openshift/library-go/pkg/operator/v1helpers"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

var errManagementState = errors.New("unknown managementState")

type syncer struct {
	operands []operand
	shape    shape
	kube     kubernetes.Interface
	operator v1helpers.OperatorClient

	infrastructures configlisters.InfrastructureLister
	deployments     appslisters.DeploymentNamespaceLister
	budgets         policylisters.PodDisruptionBudgetNamespaceLister

	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
}

// sync implements factory.SyncFunc. It never runs concurrently.
func (s *syncer) sync(ctx context.Context, syncCtx factory.SyncContext) error {
	// Not from the cache: a stale generation would cause another write.
	spec, status, _, err := s.operator.GetOperatorStateWithQuorum(ctx)
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Info("Waiting for the Console object")
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the Console: %w", err)
	}
	switch spec.ManagementState {
	case operatorv1.Managed:
		return s.ensure(ctx, syncCtx.Recorder(), status.Generations)
	case operatorv1.Unmanaged:
		return nil
	case operatorv1.Removed:
		return s.remove(ctx, syncCtx.Recorder())
	case operatorv1.Force:
	}
	return fmt.Errorf("%w %q of consoles.operator.openshift.io/cluster; want Managed, Unmanaged or Removed", errManagementState, spec.ManagementState)
}

func (s *syncer) ensure(ctx context.Context, recorder events.Recorder, generations []operatorv1.GenerationStatus) error {
	switch infrastructure, err := s.infrastructures.Get(configName); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading the Infrastructure: %w", err)
	default:
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return fmt.Errorf("reading the topology: %w", err)
		}
		s.known = &cluster
	}
	if s.known == nil {
		klog.FromContext(ctx).Info("Waiting for the Infrastructure object")
		return nil
	}
	report := operatorv1ac.OperatorStatus()
	var errs []error
	for _, o := range s.operands {
		want, budget, err := s.shape(o.baseDeployment(), *s.known)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		live, err := s.ensureDeployment(ctx, recorder, want, generations)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, s.ensureBudget(ctx, recorder, o.name, budget))
		report.WithGenerations(generation(live)).WithConditions(o.deploymentConditions(live, s.known.UnknownValues())...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.report(ctx, report)
}

func (s *syncer) ensureDeployment(ctx context.Context, recorder events.Recorder, want *appsv1.Deployment, generations []operatorv1.GenerationStatus) (*appsv1.Deployment, error) {
	present, err := s.deployments.Get(want.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Deployment %s/%s: %w", want.Namespace, want.Name, err)
	}
	if err == nil {
		workload.UnblockRollout(want, present)
	}
	expected := resourcemerge.ExpectedDeploymentGeneration(want, generations)
	live, _, err := resourceapply.ApplyDeployment(ctx, s.kube.AppsV1(), recorder, want, expected)
	if err != nil {
		return nil, fmt.Errorf("applying Deployment %s/%s: %w", want.Namespace, want.Name, err)
	}
	return live, nil
}

func (s *syncer) ensureBudget(ctx context.Context, recorder events.Recorder, name string, want *policyv1.PodDisruptionBudget) error {
	if want == nil {
		return s.removeBudget(ctx, recorder, name)
	}
	if _, _, err := resourceapply.ApplyPodDisruptionBudget(ctx, s.kube.PolicyV1(), recorder, want); err != nil {
		return fmt.Errorf("applying PodDisruptionBudget %s/%s: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// remove deletes what the operator has created. A downloads Deployment of a static manifest stays.
func (s *syncer) remove(ctx context.Context, recorder events.Recorder) error {
	report := operatorv1ac.OperatorStatus()
	var errs []error
	for _, o := range s.operands {
		errs = append(errs, s.removeDeployment(ctx, recorder, o.name), s.removeBudget(ctx, recorder, o.name))
		report.WithConditions(o.removedConditions()...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.report(ctx, report)
}

func (s *syncer) removeDeployment(ctx context.Context, recorder events.Recorder, name string) error {
	live, err := s.deployments.Get(name)
	if apierrors.IsNotFound(err) || err == nil && live.DeletionTimestamp != nil {
		return nil // a delete would be a request in every sync
	} else if err != nil {
		return fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	if _, _, err := resourceapply.DeleteDeployment(ctx, s.kube.AppsV1(), recorder, live); err != nil {
		return fmt.Errorf("deleting Deployment %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

func (s *syncer) removeBudget(ctx context.Context, recorder events.Recorder, name string) error {
	live, err := s.budgets.Get(name)
	if apierrors.IsNotFound(err) || err == nil && live.DeletionTimestamp != nil {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading PodDisruptionBudget %s: %w", name, err)
	}
	if _, _, err := resourceapply.DeletePodDisruptionBudget(ctx, s.kube.PolicyV1(), recorder, live); err != nil {
		return fmt.Errorf("deleting PodDisruptionBudget %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

// report applies the operator's whole status; conditions of others stay.
func (s *syncer) report(ctx context.Context, report *operatorv1ac.OperatorStatusApplyConfiguration) error {
	if err := s.operator.ApplyOperatorStatus(ctx, fieldManager, report); err != nil {
		return fmt.Errorf("reporting on the Console: %w", err)
	}
	return nil
}
