// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
)

// Hub is a client of a hub.
type Hub struct {
	client.Client
	raw rest.Interface
}

// Connect returns a client. The error is a fleet.ErrNoHub or fleet.ErrNoAddOns for another cluster.
func Connect(config *rest.Config) (*Hub, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := discovered.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("reading the APIs of the hub: %w", err)
	}
	if err := fleet.CheckHub(groups); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, clusterv1.Install, clusterv1beta1.Install, addonv1alpha1.Install, workv1.Install} {
		if err := install(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	return &Hub{c, discovered.RESTClient()}, err
}

// list calls do for each object of a path. T has the fields that are decoded.
func list[T any](ctx context.Context, h *Hub, path string, limit int, selector metav1.ListOptions, do func(*T)) error {
	for {
		request := h.raw.Get().AbsPath("/apis/" + path)
		for name, value := range map[string]string{
			"limit": strconv.Itoa(limit), "continue": selector.Continue, "labelSelector": selector.LabelSelector, "fieldSelector": selector.FieldSelector,
		} {
			if value != "" {
				request = request.Param(name, value)
			}
		}
		body, err := request.Do(ctx).Raw()
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []T             `json:"items"`
		}
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", path, err)
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		if selector.Continue = page.Metadata.Continue; selector.Continue == "" {
			return nil
		}
	}
}

const (
	pageSize  = 500
	workPages = 50 // of ManifestWorks
)

// Clusters returns the clusters, without their managedFields.
func (h *Hub) Clusters(ctx context.Context, selector string) ([]clusterv1.ManagedCluster, error) {
	var all []clusterv1.ManagedCluster
	err := list(ctx, h, clusterv1.GroupVersion.String()+"/managedclusters", pageSize, metav1.ListOptions{LabelSelector: selector}, func(c *clusterv1.ManagedCluster) {
		c.ManagedFields = nil
		all = append(all, *c)
	})
	return all, err
}

// AddOns returns the add-ons of a name, without their managedFields.
func (h *Hub) AddOns(ctx context.Context, name string) ([]addonv1alpha1.ManagedClusterAddOn, error) {
	var all []addonv1alpha1.ManagedClusterAddOn
	selector := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	err := list(ctx, h, addonv1alpha1.GroupVersion.String()+"/managedclusteraddons", pageSize, selector, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.ManagedFields = nil
		all = append(all, *a)
	})
	return all, err
}

// reported is what is decoded of a ManifestWork.
type reported struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Status workv1.ManifestWorkStatus `json:"status"`
}

// works calls do with what the ManifestWorks of the add-on report, without manifests that report nothing.
func (h *Hub) works(ctx context.Context, namespace string, do func(workv1.ManifestWork)) error {
	selector := metav1.ListOptions{LabelSelector: fmt.Sprintf("%s in (%s,%s)", addonv1alpha1.AddonLabelKey, fleet.AddOn, executor.AddOn)}
	path := workv1.GroupVersion.String() + "/manifestworks"
	if namespace != "" {
		path = workv1.GroupVersion.String() + "/namespaces/" + namespace + "/manifestworks"
	}
	return list(ctx, h, path, workPages, selector, func(r *reported) {
		work := workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: r.Metadata.Namespace, Labels: r.Metadata.Labels}}
		work.Status.ResourceStatus.Manifests = slices.Clone(slices.DeleteFunc(r.Status.ResourceStatus.Manifests, func(m workv1.ManifestCondition) bool {
			refused := slices.ContainsFunc(m.Conditions, func(c metav1.Condition) bool {
				return c.Type == workv1.ManifestApplied && c.Status == metav1.ConditionFalse
			})
			return len(m.StatusFeedbacks.Values) == 0 && !refused
		}))
		do(work)
	})
}
