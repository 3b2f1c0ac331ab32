// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	configclientset "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	operatorclientset "github.com/openshift/client-go/operator/clientset/versioned"
	operatorinformers "github.com/openshift/client-go/operator/informers/externalversions"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/ingress"
)

const fieldManager = "cluster-ingress-operator"

// Run runs the operator until the context ends, which is not an error. Like the stock operator it has no leader
// election.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	config = rest.CopyConfig(config)
	// resourceapply cannot set a field manager; the API server derives it from the user agent.
	config.UserAgent = fieldManager
	// It also reads every Deployment and budget in each sync, for which the default limit of 5 requests a second is too
	// low.
	config.QPS, config.Burst = 50, 100
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	configClient, err := configclientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	operatorClient, err := operatorclientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}

	configs := configinformers.NewSharedInformerFactoryWithOptions(configClient, 0, configinformers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + ingress.ConfigName }))
	operators := operatorinformers.NewSharedInformerFactoryWithOptions(operatorClient, 0,
		operatorinformers.WithNamespace(ingress.IngressControllerNamespace))
	routers := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(ingress.RouterNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = owningLabel }))

	infrastructures, ingresses := configs.Config().V1().Infrastructures(), configs.Config().V1().Ingresses()
	controllers := operators.Operator().V1().IngressControllers()
	deployments, budgets := routers.Apps().V1().Deployments(), routers.Policy().V1().PodDisruptionBudgets()
	s := &syncer{
		options: options, kube: kube, ingressControllers: operatorClient.OperatorV1(),
		infrastructures: infrastructures.Lister(), ingresses: ingresses.Lister(),
		controllers: controllers.Lister().IngressControllers(ingress.IngressControllerNamespace),
		routers:     deployments.Lister().Deployments(ingress.RouterNamespace),
		budgets:     budgets.Lister().PodDisruptionBudgets(ingress.RouterNamespace),
	}
	recorder := events.NewRecorder(kube.CoreV1().Events(ingress.IngressControllerNamespace), "ingress-operator",
		&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerNamespace},
		clock.RealClock{})
	controller := factory.New().
		WithInformers(infrastructures.Informer(), ingresses.Informer(), controllers.Informer(), deployments.Informer(), budgets.Informer()).
		WithSync(s.sync).
		ToController("RouterController", recorder)

	configs.Start(ctx.Done())
	operators.Start(ctx.Done())
	routers.Start(ctx.Done())
	controller.Run(ctx, 1)
	return nil
}
