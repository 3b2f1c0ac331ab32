// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	configlisters "github.com/openshift/client-go/config/listers/config/v1"
	operatorclient "github.com/openshift/client-go/operator/clientset/versioned/typed/operator/v1"
	operatorlisters "github.com/openshift/client-go/operator/listers/operator/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	"github.com/openshift/library-go/pkg/operator/resource/resourcemerge"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

type syncer struct {
	options            Options
	kube               kubernetes.Interface
	ingressControllers operatorclient.IngressControllersGetter

	infrastructures configlisters.InfrastructureLister
	ingresses       configlisters.IngressLister
	controllers     operatorlisters.IngressControllerNamespaceLister
	routers         appslisters.DeploymentNamespaceLister
	budgets         policylisters.PodDisruptionBudgetNamespaceLister

	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
	// generations are those of the routers at the last write, by which resourceapply detects writes of others. A new
	// process writes each router once.
	generations []operatorv1.GenerationStatus
}

// sync implements factory.SyncFunc. It never runs concurrently.
func (s *syncer) sync(ctx context.Context, syncCtx factory.SyncContext) error {
	infrastructure, err := s.infrastructures.Get(ingress.ConfigName)
	switch {
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
	var placement configv1.DefaultPlacement
	if config, err := s.ingresses.Get(ingress.ConfigName); err == nil {
		placement = config.Status.DefaultPlacement
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the Ingress configuration: %w", err)
	}
	if err := s.ensureDefault(ctx, syncCtx, placement); err != nil {
		return err
	}
	all, err := s.controllers.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing IngressControllers: %w", err)
	}
	living := map[string]bool{}
	var errs []error
	for _, ic := range all {
		if ic.DeletionTimestamp == nil {
			living[ic.Name] = true
			errs = append(errs, s.ensure(ctx, syncCtx, ic, placement))
		}
	}
	return errors.Join(append(errs, s.removeOrphans(ctx, syncCtx, living))...)
}

func (s *syncer) ensureDefault(ctx context.Context, syncCtx factory.SyncContext, placement configv1.DefaultPlacement) error {
	if !s.options.CreateDefault {
		return nil
	}
	if _, err := s.controllers.Get(ingress.IngressControllerName); !apierrors.IsNotFound(err) {
		return err
	}
	ic, err := desiredDefault(*s.known, placement)
	if err != nil || ic == nil {
		return err
	}
	_, err = s.ingressControllers.IngressControllers(ic.Namespace).Create(ctx, ic, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the default IngressController: %w", err)
	}
	if err == nil {
		syncCtx.Recorder().Eventf("DefaultIngressControllerCreated", "Created the default IngressController")
	}
	return nil
}

func (s *syncer) ensure(ctx context.Context, syncCtx factory.SyncContext, ic *operatorv1.IngressController, placement configv1.DefaultPlacement) error {
	want, wantBudget, err := desiredOperand(*s.known, placement, ic)
	if err != nil {
		return fmt.Errorf("shaping the router: %w", err)
	}
	router, err := s.ensureRouter(ctx, syncCtx, want)
	if err != nil {
		return err
	}
	if err := s.ensureBudget(ctx, syncCtx, want.Name, wantBudget); err != nil {
		return err
	}
	status := desiredStatus(ic, effectivePublishing(ic, s.known.Platform), router)
	if equality.Semantic.DeepEqual(ic.Status, status) {
		return nil
	}
	// The resource version prevents that this overwrites writes of others.
	write := ic.DeepCopy()
	write.Status = status
	_, err = s.ingressControllers.IngressControllers(ic.Namespace).UpdateStatus(ctx, write, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("updating the status of IngressController %s/%s: %w", ic.Namespace, ic.Name, err)
	}
	return nil
}

func (s *syncer) ensureRouter(ctx context.Context, syncCtx factory.SyncContext, want *appsv1.Deployment) (*appsv1.Deployment, error) {
	expected := resourcemerge.ExpectedDeploymentGeneration(want, s.generations)
	router, _, err := resourceapply.ApplyDeployment(ctx, s.kube.AppsV1(), syncCtx.Recorder(), want, expected)
	if err != nil {
		return nil, fmt.Errorf("applying Deployment %s/%s: %w", want.Namespace, want.Name, err)
	}
	resourcemerge.SetDeploymentGeneration(&s.generations, router)
	return router, nil
}

func (s *syncer) ensureBudget(ctx context.Context, syncCtx factory.SyncContext, name string, want *policyv1.PodDisruptionBudget) error {
	if want != nil {
		if _, _, err := resourceapply.ApplyPodDisruptionBudget(ctx, s.kube.PolicyV1(), syncCtx.Recorder(), want); err != nil {
			return fmt.Errorf("applying PodDisruptionBudget %s/%s: %w", want.Namespace, want.Name, err)
		}
		return nil
	}
	live, err := s.budgets.Get(name)
	if apierrors.IsNotFound(err) {
		return nil // a delete would be a request in every sync
	} else if err != nil {
		return fmt.Errorf("reading PodDisruptionBudget %s: %w", name, err)
	}
	if _, _, err := resourceapply.DeletePodDisruptionBudget(ctx, s.kube.PolicyV1(), syncCtx.Recorder(), live); err != nil {
		return fmt.Errorf("deleting PodDisruptionBudget %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

func (s *syncer) removeOrphans(ctx context.Context, syncCtx factory.SyncContext, living map[string]bool) error {
	routers, err := s.routers.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing routers: %w", err)
	}
	budgets, err := s.budgets.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing budgets: %w", err)
	}
	var errs []error
	for _, router := range routers {
		if living[router.Labels[owningLabel]] || router.DeletionTimestamp != nil {
			continue
		}
		if _, _, err := resourceapply.DeleteDeployment(ctx, s.kube.AppsV1(), syncCtx.Recorder(), router); err != nil {
			errs = append(errs, fmt.Errorf("deleting Deployment %s/%s: %w", router.Namespace, router.Name, err))
			continue
		}
		s.generations = slices.DeleteFunc(s.generations, func(g operatorv1.GenerationStatus) bool {
			return g.Namespace == router.Namespace && g.Name == router.Name
		})
	}
	for _, budget := range budgets {
		if living[budget.Labels[owningLabel]] || budget.DeletionTimestamp != nil {
			continue
		}
		if _, _, err := resourceapply.DeletePodDisruptionBudget(ctx, s.kube.PolicyV1(), syncCtx.Recorder(), budget); err != nil {
			errs = append(errs, fmt.Errorf("deleting PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err))
		}
	}
	return errors.Join(errs...)
}
