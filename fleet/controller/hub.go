// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"open-cluster-management.io/addon-framework/pkg/addonmanager"
	framework "open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/index"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	clusterinformers "open-cluster-management.io/api/client/cluster/informers/externalversions"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workinformers "open-cluster-management.io/api/client/work/informers/externalversions"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	workapplier "open-cluster-management.io/sdk-go/pkg/apis/work/v1/applier"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/agent"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/feedback"
)

const resync = 10 * time.Minute

// addOn is our agent with what it needs of a hub.
type addOn struct {
	*agent.Agent
	strategy strategy
	hub      types.UID
	// apply writes a ManifestWork and returns it as it is.
	apply func(*workv1.ManifestWork) (*workv1.ManifestWork, error)
	grant bool // the rights of the executor; false if somebody else does
}

// Manifests implements agent.AgentAddon.
func (a *addOn) Manifests(cluster *clusterv1.ManagedCluster, addon *addonv1alpha1.ManagedClusterAddOn) ([]runtime.Object, error) {
	if addon.DeletionTimestamp == nil { // what was installed is released, whatever the strategy is now
		if err := a.strategy.check(); err != nil {
			return nil, err
		}
	}
	objects, err := a.Agent.Manifests(cluster, addon)
	if err != nil {
		return nil, err
	}
	work, err := executor.Claim(addon, a.hub)
	if err == nil {
		if !a.grant {
			work.Spec.Executor = executor.Executor()
		}
		work, err = a.apply(work)
	}
	if err == nil {
		err = executor.Claimed(work)
	}
	if err != nil {
		return nil, fmt.Errorf("claiming cluster %s: %w", cluster.Name, err)
	}
	if !a.grant {
		return objects, nil
	}
	work, err = executor.Work(addon, objects)
	if err == nil {
		work, err = a.apply(work)
	}
	if err == nil {
		err = executor.Applied(work)
	}
	if err != nil {
		return nil, fmt.Errorf("granting the rights to ManifestWorks of cluster %s: %w", cluster.Name, err)
	}
	return objects, nil
}

// start starts the framework's controllers with our agent. They end with the context.
func start(ctx context.Context, config *rest.Config, grant bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := client.Discovery().ServerGroups()
	if err == nil {
		err = fleet.CheckHub(groups)
	}
	if err != nil {
		return fmt.Errorf("API server %s: %w", config.Host, err)
	}
	itself, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading which hub this is: %w", err)
	}
	works, err := workclient.NewForConfig(config)
	if err != nil {
		return err
	}
	addons, err := addonclient.NewForConfig(config)
	if err != nil {
		return err
	}
	clusters, err := clusterclient.NewForConfig(config)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	kubeCache := informers.NewSharedInformerFactory(client, resync)
	addonCache := addoninformers.NewSharedInformerFactory(addons, resync)
	clusterCache := clusterinformers.NewSharedInformerFactory(clusters, resync)
	dynamicCache := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, resync)
	workCache := workinformers.NewSharedInformerFactoryWithOptions(works, resync, workinformers.WithTransform(asWritten),
		workinformers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = fmt.Sprintf("%s in (%s,%s)", addonv1alpha1.AddonLabelKey, fleet.AddOn, executor.AddOn)
		}))
	its, cluster, work := addonCache.Addon().V1alpha1(), clusterCache.Cluster().V1beta1(), workCache.Work().V1().ManifestWorks()
	a := &addOn{hub: itself.UID, grant: grant, strategy: strategy{its.ClusterManagementAddOns().Lister(), cluster.Placements().Lister(), cluster.PlacementDecisions().Lister()}}
	a.Agent = &agent.Agent{
		Configuration: func(namespace, name string) (*addonv1alpha1.AddOnDeploymentConfig, error) {
			return its.AddOnDeploymentConfigs().Lister().AddOnDeploymentConfigs(namespace).Get(name)
		},
		Works: func(cluster string) []*workv1.ManifestWork { return worksOf(work.Lister(), cluster) },
		Installing: func(cluster string) *feedback.Installing {
			claim, _ := work.Lister().ManifestWorks(cluster).Get(executor.ClaimName) // a cache has no other error than that there is none
			return feedback.Read(claim).Installing
		},
		Selected: a.strategy.selects,
		Now:      time.Now,
	}
	if a.Hash, err = agent.Hash(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Installs configurations with these manifests", "manifests", a.Hash)
	applier := workapplier.NewWorkApplierWithTypedClient(limited{works, nil}, work.Lister())
	a.apply = func(w *workv1.ManifestWork) (*workv1.ManifestWork, error) { return applier.Apply(ctx, w) }
	manager := addonmanager.NewBaseAddonManagerImpl(config)
	err = errors.Join(
		manager.AddAgent(a),
		// As addonmanager.New does it, which makes its own clients.
		work.Informer().AddIndexers(cache.Indexers{
			index.ManifestWorkByAddon: index.IndexManifestWorkByAddon, index.ManifestWorkByHostedAddon: index.IndexManifestWorkByHostedAddon,
			index.ManifestWorkHookByHostedAddon: index.IndexManifestWorkHookByHostedAddon,
		}),
		its.ManagedClusterAddOns().Informer().AddIndexers(cache.Indexers{
			index.ManagedClusterAddonByNamespace: index.IndexManagedClusterAddonByNamespace, index.AddonByConfig: index.IndexAddonByConfig,
		}),
		its.ClusterManagementAddOns().Informer().AddIndexers(cache.Indexers{index.ClusterManagementAddonByConfig: index.IndexClusterManagementAddonByConfig}),
	)
	if err != nil {
		return err
	}
	all := func() {
		present, err := its.ManagedClusterAddOns().Lister().List(labels.Everything())
		if err != nil {
			return
		}
		for _, p := range present {
			manager.Trigger(p.Namespace, p.Name)
		}
	}
	// The framework neither reads the strategy, nor knows the ManifestWorks with rights.
	for informer, changed := range map[cache.SharedIndexInformer]func(metav1.Object){
		its.ClusterManagementAddOns().Informer(): func(metav1.Object) { all() },
		cluster.Placements().Informer():          func(metav1.Object) { all() },
		cluster.PlacementDecisions().Informer():  func(metav1.Object) {},
		its.AddOnDeploymentConfigs().Informer():  func(metav1.Object) { all() },
		work.Informer(): func(o metav1.Object) {
			if o.GetLabels()[addonv1alpha1.AddonLabelKey] == executor.AddOn {
				manager.Trigger(o.GetNamespace(), fleet.AddOn)
			}
		},
	} {
		if _, err := informer.AddEventHandler(onChange(changed)); err != nil {
			return err
		}
	}
	// What the agent reads is there before the framework asks it.
	addonCache.Start(ctx.Done())
	clusterCache.Start(ctx.Done())
	workCache.Start(ctx.Done())
	for _, synced := range []map[reflect.Type]bool{
		addonCache.WaitForCacheSync(ctx.Done()), clusterCache.WaitForCacheSync(ctx.Done()), workCache.WaitForCacheSync(ctx.Done()),
	} {
		for kind, ok := range synced {
			if !ok {
				return fmt.Errorf("reading %s: %w", kind, ctx.Err())
			}
		}
	}
	if err := manager.StartWithInformers(ctx, limited{works, executor.Executor()}, work, kubeCache, addonCache, clusterCache, dynamicCache); err != nil {
		return err
	}
	for _, c := range []interface{ Start(<-chan struct{}) }{kubeCache, addonCache, clusterCache, workCache, dynamicCache} {
		c.Start(ctx.Done())
	}
	return nil
}

var _ framework.AgentAddon = &addOn{}

// worksOf returns the ManifestWorks of a cluster, without that of the rights.
func worksOf(works worklisters.ManifestWorkLister, cluster string) []*workv1.ManifestWork {
	its, _ := works.ManifestWorks(cluster).List(labels.SelectorFromSet(labels.Set{addonv1alpha1.AddonLabelKey: fleet.AddOn})) // a cache has no errors
	return its
}

// onChange calls f for changes of the specification, and for every change of a ManifestWork, whose status matters.
func onChange(f func(metav1.Object)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f(o.(metav1.Object)) },
		UpdateFunc: func(before, after any) {
			b, a := before.(metav1.Object), after.(metav1.Object)
			if _, isWork := after.(*workv1.ManifestWork); isWork || b.GetGeneration() != a.GetGeneration() {
				f(a)
			}
		},
	}
}
