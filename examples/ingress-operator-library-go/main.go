// SPDX-License-Identifier: Apache-2.0

// Command ingress-operator-library-go is a small ingress operator on library-go that vendors ingress: for every
// IngressController it keeps a router Deployment and its budget in the shape that the topology asks for. Status,
// Services, certificates and DNS, which do not depend on the topology, are left out.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	configlisters "github.com/openshift/client-go/config/listers/config/v1"
	operatorclient "github.com/openshift/client-go/operator/clientset/versioned"
	operatorinformers "github.com/openshift/client-go/operator/informers/externalversions"
	operatorlisters "github.com/openshift/client-go/operator/listers/operator/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	"github.com/openshift/library-go/pkg/operator/resource/resourcemerge"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// owningLabel is on a router, with the name of its IngressController.
const owningLabel = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "Kubeconfig file; without it, the service account of the pod.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, config)
	}
	if err != nil {
		klog.Background().Error(err, "The operator ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, config *rest.Config) error {
	// The user agent is also the field manager. resourceapply reads every object in each sync, more than 5 a second.
	config.UserAgent, config.QPS, config.Burst = "cluster-ingress-operator", 50, 100
	kube, kubeErr := kubernetes.NewForConfig(config)
	configs, configErr := configclient.NewForConfig(config)
	operators, operatorErr := operatorclient.NewForConfig(config)
	if err := errors.Join(kubeErr, configErr, operatorErr); err != nil {
		return fmt.Errorf("make the clients: %w", err)
	}
	configFactory := configinformers.NewSharedInformerFactory(configs, 0)
	operatorFactory := operatorinformers.NewSharedInformerFactoryWithOptions(operators, 0,
		operatorinformers.WithNamespace(ingress.IngressControllerNamespace))
	routerFactory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(ingress.RouterNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = owningLabel }))
	infrastructures, ingresses := configFactory.Config().V1().Infrastructures(), configFactory.Config().V1().Ingresses()
	controllers := operatorFactory.Operator().V1().IngressControllers()
	routers, budgets := routerFactory.Apps().V1().Deployments(), routerFactory.Policy().V1().PodDisruptionBudgets()
	o := &operator{
		kube: kube, operators: operators, infrastructures: infrastructures.Lister(), ingresses: ingresses.Lister(),
		controllers: controllers.Lister().IngressControllers(ingress.IngressControllerNamespace),
		routers:     routers.Lister().Deployments(ingress.RouterNamespace),
		budgets:     budgets.Lister().PodDisruptionBudgets(ingress.RouterNamespace),
	}
	recorder := events.NewLoggingEventRecorder("ingress-operator", clock.RealClock{})
	controller := factory.New().WithSync(o.sync).WithInformers(infrastructures.Informer(), ingresses.Informer(),
		controllers.Informer(), routers.Informer(), budgets.Informer()).ToController("RouterController", recorder)
	configFactory.Start(ctx.Done())
	operatorFactory.Start(ctx.Done())
	routerFactory.Start(ctx.Done())
	controller.Run(ctx, 1)
	return nil
}

type operator struct {
	kube            kubernetes.Interface
	operators       operatorclient.Interface
	infrastructures configlisters.InfrastructureLister
	ingresses       configlisters.IngressLister
	controllers     operatorlisters.IngressControllerNamespaceLister
	routers         appslisters.DeploymentNamespaceLister
	budgets         policylisters.PodDisruptionBudgetNamespaceLister
	// known is the last topology. It holds while the Infrastructure is missing.
	known *topology.Cluster
	// generations are those of the last writes: resourceapply detects writes of others by them.
	generations []operatorv1.GenerationStatus
}

func (o *operator) sync(ctx context.Context, syncCtx factory.SyncContext) error {
	infrastructure, err := o.infrastructures.Get(ingress.ConfigName)
	if err == nil {
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return fmt.Errorf("read the topology: %w", err)
		}
		o.known = &cluster
	} else if !apierrors.IsNotFound(err) || o.known == nil {
		return fmt.Errorf("read the Infrastructure: %w", err)
	}
	var placement configv1.DefaultPlacement
	if config, err := o.ingresses.Get(ingress.ConfigName); err == nil {
		placement = config.Status.DefaultPlacement
	}
	if _, err := o.controllers.Get(ingress.IngressControllerName); apierrors.IsNotFound(err) {
		ic, err := ingress.DefaultIngressController(*o.known, placement, ingress.PlacementFromTopology)
		if err == nil && ic != nil {
			_, err = o.operators.OperatorV1().IngressControllers(ic.Namespace).Create(ctx, ic, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the default IngressController: %w", err)
		}
	}
	all, listErr := o.controllers.List(labels.Everything())
	live, liveErr := o.routers.List(labels.Everything())
	errs := []error{listErr, liveErr}
	for _, ic := range all {
		errs = append(errs, o.ensure(ctx, syncCtx.Recorder(), ic, placement))
	}
	for _, router := range live {
		if _, gone := o.controllers.Get(router.Labels[owningLabel]); apierrors.IsNotFound(gone) {
			_, _, err := resourceapply.DeleteDeployment(ctx, o.kube.AppsV1(), syncCtx.Recorder(), router)
			errs = append(errs, err, o.ensureBudget(ctx, syncCtx.Recorder(), router, nil))
		}
	}
	return errors.Join(errs...)
}

// ensure writes the router of an IngressController, and its budget or none.
func (o *operator) ensure(ctx context.Context, recorder events.Recorder, ic *operatorv1.IngressController, placement configv1.DefaultPlacement) error {
	host, err := ingress.NewHost(*o.known, placement, ic)
	if err != nil {
		return fmt.Errorf("read IngressController %s: %w", ic.Name, err)
	}
	base := baseRouter(ic, o.known.Platform)
	router, err := ingress.ShapeRouter(base, host)
	budget, budgetErr := ingress.RouterPodDisruptionBudget(host, base.Spec.Selector.MatchLabels)
	if err = errors.Join(err, budgetErr); err != nil {
		return fmt.Errorf("shape the router of IngressController %s: %w", ic.Name, err)
	}
	router, _, err = resourceapply.ApplyDeployment(ctx, o.kube.AppsV1(), recorder, router, resourcemerge.ExpectedDeploymentGeneration(router, o.generations))
	if err != nil {
		return fmt.Errorf("apply the router of IngressController %s: %w", ic.Name, err)
	}
	resourcemerge.SetDeploymentGeneration(&o.generations, router)
	return o.ensureBudget(ctx, recorder, router, budget)
}

func (o *operator) ensureBudget(ctx context.Context, recorder events.Recorder, router *appsv1.Deployment, want *policyv1.PodDisruptionBudget) error {
	var err error
	if live, missing := o.budgets.Get(router.Name); want != nil {
		want.Labels = router.Labels
		_, _, err = resourceapply.ApplyPodDisruptionBudget(ctx, o.kube.PolicyV1(), recorder, want)
	} else if missing == nil { // else a delete would be a request in every sync
		_, _, err = resourceapply.DeletePodDisruptionBudget(ctx, o.kube.PolicyV1(), recorder, live)
	}
	return err
}

// baseRouter returns the router without what depends on the topology. The status, the spec or the platform decides
// whether it uses the ports of its node (U-ING-7).
func baseRouter(ic *operatorv1.IngressController, platform configv1.PlatformType) *appsv1.Deployment {
	strategy := cmp.Or(ic.Status.EndpointPublishingStrategy, ic.Spec.EndpointPublishingStrategy, &operatorv1.EndpointPublishingStrategy{})
	hostNetwork := strategy.Type == operatorv1.HostNetworkStrategyType || strategy.Type == "" && !topology.ProvidesLoadBalancer(platform)
	ports := []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 443}, {ContainerPort: 1936}} // pods get the same host ports
	pods := map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": ic.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ingress.RouterNamespace, Name: "router-" + ic.Name, Labels: map[string]string{owningLabel: ic.Name}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pods}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: pods},
			Spec:       corev1.PodSpec{HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "router", Image: "router", Ports: ports}}},
		}},
	}
}
