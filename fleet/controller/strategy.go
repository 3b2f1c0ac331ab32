// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonlisters "open-cluster-management.io/api/client/addon/listers/addon/v1alpha1"
	clusterlisters "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/rollout"
)

// strategy reads which clusters are selected, and whether that may be carried out.
type strategy struct {
	addons     addonlisters.ClusterManagementAddOnLister
	placements clusterlisters.PlacementLister
	decisions  clusterlisters.PlacementDecisionLister
}

// read returns the ClusterManagementAddOn and the clusters of each of its Placements, NAMESPACE/NAME.
func (s strategy) read() (*addonv1alpha1.ClusterManagementAddOn, map[string][]string, error) {
	addon, err := s.addons.Get(fleet.AddOn)
	if err != nil {
		return nil, nil, err
	}
	selected := map[string][]string{}
	for _, p := range addon.Spec.InstallStrategy.Placements {
		decisions, err := s.decisions.PlacementDecisions(p.Namespace).List(labels.SelectorFromSet(labels.Set{clusterv1beta1.PlacementLabel: p.Name}))
		if err != nil {
			return nil, nil, err
		}
		for _, d := range decisions {
			for _, cluster := range d.Status.Decisions {
				selected[p.Namespace+"/"+p.Name] = append(selected[p.Namespace+"/"+p.Name], cluster.ClusterName)
			}
		}
	}
	return addon, selected, nil
}

// selects reports whether the add-on of a cluster, once deleted, would come back. It does not when the add-on goes as a
// whole.
func (s strategy) selects(cluster string) (bool, error) {
	addon, selected, err := s.read()
	if apierrors.IsNotFound(err) || err == nil && addon.DeletionTimestamp != nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return rollout.GroupOf(addon, selected)[cluster] != "", nil
}

// check returns why nothing may be written to any cluster.
func (s strategy) check() error {
	addon, selected, err := s.read()
	if err != nil {
		return err
	}
	var placements []*clusterv1beta1.Placement
	var faults []error
	for _, p := range addon.Spec.InstallStrategy.Placements {
		placement, err := s.placements.Placements(p.Namespace).Get(p.Name)
		if err != nil {
			faults = append(faults, fmt.Errorf("reading Placement %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		placements = append(placements, placement)
	}
	return errors.Join(append(faults, rollout.Check(addon, placements, selected))...)
}
