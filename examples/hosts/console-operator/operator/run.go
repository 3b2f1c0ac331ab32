// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	configclientset "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/genericoperatorclient"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/console"
)

const (
	fieldManager = "console-operator"
	// configName is the name of the only Infrastructure and the only Console.
	configName     = "cluster"
	eventNamespace = "openshift-console-operator"
	// resync is for what has no watch, such as a missing namespace.
	resync = time.Minute
)

// Run runs the operator until the context ends, which is not an error. It has no leader election.
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
	operatorClient, consoles, err := genericoperatorclient.NewClusterScopedOperatorClient(clock.RealClock{}, config,
		operatorv1.GroupVersion.WithResource("consoles"), operatorv1.GroupVersion.WithKind("Console"), appliedSpec, appliedStatus)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}

	configs := configinformers.NewSharedInformerFactoryWithOptions(configClient, 0, configinformers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + configName }))
	namespaced := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(console.Namespace))
	infrastructures := configs.Config().V1().Infrastructures()
	deployments, budgets := namespaced.Apps().V1().Deployments(), namespaced.Policy().V1().PodDisruptionBudgets()
	s := &syncer{
		operands: options.operands(), shape: options.shape(), kube: kube, operator: operatorClient,
		infrastructures: infrastructures.Lister(),
		deployments:     deployments.Lister().Deployments(console.Namespace),
		budgets:         budgets.Lister().PodDisruptionBudgets(console.Namespace),
	}
	recorder := events.NewRecorder(kube.CoreV1().Events(eventNamespace), fieldManager,
		&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: eventNamespace, Name: eventNamespace}, clock.RealClock{})
	controller := factory.New().
		WithInformers(infrastructures.Informer(), operatorClient.Informer(), deployments.Informer(), budgets.Informer()).
		WithSync(s.sync).
		WithSyncDegradedOnError(operatorClient).
		ResyncEvery(resync).
		ToController("ConsoleDeploymentController", recorder)

	if err := awaitKinds(ctx, kube.Discovery()); err != nil {
		return nil // the context has ended
	}
	for _, start := range []func(<-chan struct{}){configs.Start, consoles.Start, namespaced.Start} {
		start(ctx.Done())
	}
	controller.Run(ctx, 1)
	return nil
}

// awaitKinds waits until the API server serves the watched kinds of OpenShift. The controller itself would end the
// process after 10 minutes.
func awaitKinds(ctx context.Context, client discovery.DiscoveryInterface) error {
	const every = time.Second
	wanted := map[schema.GroupVersion]string{configv1.GroupVersion: "infrastructures", operatorv1.GroupVersion: "consoles"}
	last := ""
	return wait.PollUntilContextCancel(ctx, every, true, func(context.Context) (bool, error) {
		for version, resource := range wanted {
			served, err := client.ServerResourcesForGroupVersion(version.String())
			if err == nil && serves(served, resource) {
				delete(wanted, version)
				continue
			}
			if missing := version.WithResource(resource).GroupResource().String(); missing != last {
				klog.FromContext(ctx).Info("Waiting for a CustomResourceDefinition", "name", missing, "err", err)
				last = missing
			}
			return false, nil
		}
		return true, nil
	})
}

func serves(list *metav1.APIResourceList, resource string) bool {
	for _, r := range list.APIResources {
		if r.Name == resource {
			return true
		}
	}
	return false
}

// appliedSpec and appliedStatus return what a field manager has applied, so that the operator client can skip writes.
func appliedSpec(object *unstructured.Unstructured, manager string) (*operatorv1ac.OperatorSpecApplyConfiguration, error) {
	live, err := typed(object)
	if err != nil {
		return nil, err
	}
	applied, err := operatorv1ac.ExtractConsole(live, manager)
	if err != nil || applied.Spec == nil {
		return nil, err
	}
	return &applied.Spec.OperatorSpecApplyConfiguration, nil
}

func appliedStatus(object *unstructured.Unstructured, manager string) (*operatorv1ac.OperatorStatusApplyConfiguration, error) {
	live, err := typed(object)
	if err != nil {
		return nil, err
	}
	applied, err := operatorv1ac.ExtractConsoleStatus(live, manager)
	if err != nil || applied.Status == nil {
		return nil, err
	}
	return &applied.Status.OperatorStatusApplyConfiguration, nil
}

func typed(object *unstructured.Unstructured) (*operatorv1.Console, error) {
	live := &operatorv1.Console{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.UnstructuredContent(), live); err != nil {
		return nil, fmt.Errorf("reading the Console: %w", err)
	}
	return live, nil
}
