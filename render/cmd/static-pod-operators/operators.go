// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/genericoperatorclient"
	"github.com/openshift/library-go/pkg/operator/revisioncontroller"
	"github.com/openshift/library-go/pkg/operator/staticpod"
	"github.com/openshift/library-go/pkg/operator/staticpod/controller/installer"
	"github.com/openshift/library-go/pkg/operator/status"
	"github.com/openshift/library-go/pkg/operator/v1helpers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/render/etcd"
	"github.com/solonode/sno/render/kubeapiserver"
	"github.com/solonode/sno/render/kubecontrollermanager"
	"github.com/solonode/sno/render/kubescheduler"
	"github.com/solonode/sno/render/staticpods"
)

const (
	name          = "static-pod-operators"
	retryInterval = time.Second
	resync        = 10 * time.Minute
	imageVariable = "OPERATOR_IMAGE"
	// redeploymentReason is the key of a pod's ConfigMap for the reason of a forced redeployment.
	redeploymentReason = "forceRedeploymentReason"
)

type operator struct {
	// name is that of the ClusterOperator and the operand; staticPod is the pod's without the node's.
	name, staticPod string
	resource, kind  string
	pod             staticpods.Pod
	extract         extractors
}

var operators = []operator{
	{"etcd", "etcd", "etcds", "Etcd", etcd.StaticPod(nil), extract(operatorv1ac.ExtractEtcd, operatorv1ac.ExtractEtcdStatus)},
	{
		"kube-apiserver", "kube-apiserver", "kubeapiservers", "KubeAPIServer", kubeapiserver.StaticPod(nil),
		extract(operatorv1ac.ExtractKubeAPIServer, operatorv1ac.ExtractKubeAPIServerStatus),
	},
	{
		"kube-controller-manager", "kube-controller-manager", "kubecontrollermanagers", "KubeControllerManager", kubecontrollermanager.StaticPod(nil),
		extract(operatorv1ac.ExtractKubeControllerManager, operatorv1ac.ExtractKubeControllerManagerStatus),
	},
	{
		"kube-scheduler", "openshift-kube-scheduler", "kubeschedulers", "KubeScheduler", kubescheduler.StaticPod(nil),
		extract(operatorv1ac.ExtractKubeScheduler, operatorv1ac.ExtractKubeSchedulerStatus),
	},
}

type extractors struct {
	spec   genericoperatorclient.StaticPodOperatorSpecExtractorFunc
	status genericoperatorclient.StaticPodOperatorStatusExtractorFunc
}

func extract[T, A any](main, status func(*T, string) (*A, error)) extractors {
	return extractors{
		spec: func(o *unstructured.Unstructured, manager string) (*operatorv1ac.StaticPodOperatorSpecApplyConfiguration, error) {
			return owned[operatorv1ac.StaticPodOperatorSpecApplyConfiguration](o, manager, main, "spec")
		},
		status: func(o *unstructured.Unstructured, manager string) (*operatorv1ac.StaticPodOperatorStatusApplyConfiguration, error) {
			return owned[operatorv1ac.StaticPodOperatorStatusApplyConfiguration](o, manager, status, "status")
		},
	}
}

// owned returns a part of what a generated function extracts, or nil if the manager owns no field of it.
func owned[P, T, A any](o *unstructured.Unstructured, manager string, extract func(*T, string) (*A, error), part string) (*P, error) {
	var object T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.UnstructuredContent(), &object); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	all, err := extract(&object, manager)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var parts map[string]*json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || parts[part] == nil {
		return nil, err
	}
	var p P
	return &p, json.Unmarshal(*parts[part], &p)
}

type options struct{ kubeconfig, image string }

func (o options) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if err := os.Setenv(imageVariable, o.image); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		for _, operator := range operators {
			if err := operator.redeploy(ctx, kube); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
				return false, nil
			}
		}
		return true, nil
	}); err != nil {
		return err
	}
	for _, operator := range operators {
		if err := operator.start(ctx, config, kube); err != nil {
			return fmt.Errorf("operator %s: %w", operator.name, err)
		}
	}
	<-ctx.Done()
	return nil
}

func (o operator) redeploy(ctx context.Context, kube kubernetes.Interface) error {
	pod, err := kube.CoreV1().ConfigMaps(o.pod.Namespace).Get(ctx, o.pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Data[redeploymentReason] = "the operators take over"
	_, err = kube.CoreV1().ConfigMaps(o.pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (o operator) start(ctx context.Context, config *rest.Config, kube kubernetes.Interface) error {
	group := schema.GroupVersion{Group: "operator.openshift.io", Version: "v1"}
	now := clock.RealClock{}
	client, operatorInformers, err := genericoperatorclient.NewStaticPodOperatorClient(now, config, group.WithResource(o.resource), group.WithKind(o.kind),
		o.extract.spec, o.extract.status)
	if err != nil {
		return err
	}
	configs, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	configInformers := configinformers.NewSharedInformerFactory(configs, resync)
	kubeInformers := v1helpers.NewKubeInformersForNamespaces(kube, "", o.pod.Namespace)
	recorder := events.NewLoggingEventRecorder(o.name, now)
	versions := status.NewVersionGetter()
	controllers, err := staticpod.NewBuilder(client, kube, kubeInformers, kubeInformers.InformersFor(""), configInformers, now).
		WithEvents(recorder).
		WithVersioning(o.name, versions).
		WithRevisionedResources(o.pod.Namespace, o.staticPod, revisioned(o.pod.ConfigMaps), revisioned(o.pod.Secrets)).
		WithUnrevisionedCerts(o.pod.CertDir, unrevisioned(o.pod.CertConfigMaps), unrevisioned(o.pod.CertSecrets)).
		WithInstaller([]string{"/" + name, "installer"}).
		ToControllers()
	if err != nil {
		return err
	}
	reporter := status.NewClusterOperatorStatusController(o.name, nil, configs.ConfigV1(), configInformers.Config().V1().ClusterOperators(),
		client, versions, recorder, now)
	operatorInformers.Start(ctx.Done())
	configInformers.Start(ctx.Done())
	kubeInformers.Start(ctx.Done())
	go controllers.Start(ctx)
	go reporter.Run(ctx, 1)
	return nil
}

func revisioned(resources []staticpods.Resource) []revisioncontroller.RevisionResource {
	var all []revisioncontroller.RevisionResource
	for _, r := range resources {
		all = append(all, revisioncontroller.RevisionResource{Name: r.Name, Optional: r.Optional})
	}
	return all
}

func unrevisioned(resources []staticpods.Resource) []installer.UnrevisionedResource {
	var all []installer.UnrevisionedResource
	for _, r := range resources {
		all = append(all, installer.UnrevisionedResource{Name: r.Name, Optional: r.Optional})
	}
	return all
}
