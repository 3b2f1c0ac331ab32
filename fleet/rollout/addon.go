// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/solonode/sno/fleet"
)

var (
	// ErrStrategy is returned for an install strategy that does not stop at clusters that fail.
	ErrStrategy = errors.New("the rollout would not stop")
	// ErrConfigurations is returned for a cluster with two configurations, or a placement without exactly one.
	ErrConfigurations = errors.New("not one configuration")
)

// Limits bound a rollout.
type Limits struct {
	MaxConcurrency intstr.IntOrString // a number or a percentage of the clusters that change at the same time
	// MaxFailures is how many clusters may exceed the ProgressDeadline before the rollout stops, a number or a share.
	MaxFailures      intstr.IntOrString
	ProgressDeadline time.Duration
	// MinSuccessTime is how long a cluster must have succeeded before the next one.
	MinSuccessTime time.Duration
}

// DefaultLimits change one cluster in ten at a time, and stop at the first one that is not in force within 10 minutes.
var DefaultLimits = Limits{
	MaxConcurrency: intstr.FromString("10%"), MaxFailures: intstr.FromInt32(0), ProgressDeadline: 10 * time.Minute, MinSuccessTime: time.Minute,
}

// Group is a Placement with the configuration of its clusters.
type Group struct {
	Namespace, Placement, Configuration string
	Limits                              Limits
}

// AddOn returns the ClusterManagementAddOn. A cluster of several groups is in the last one, so canaries come last.
func AddOn(groups ...Group) *addonv1alpha1.ClusterManagementAddOn {
	configs := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
	addon := &addonv1alpha1.ClusterManagementAddOn{
		TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn"},
		ObjectMeta: metav1.ObjectMeta{Name: fleet.AddOn, Annotations: map[string]string{
			addonv1alpha1.AddonLifecycleAnnotationKey: addonv1alpha1.AddonLifecycleAddonManagerAnnotationValue,
		}},
	}
	addon.Spec.AddOnMeta = addonv1alpha1.AddOnMeta{DisplayName: fleet.AddOn, Description: "Cluster operators that behave on a single node"}
	//nolint:staticcheck // its successor is in v1beta1, which hubs before v1.2 of Open Cluster Management do not serve
	addon.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: configs}}
	addon.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	for _, g := range groups {
		addon.Spec.InstallStrategy.Placements = append(addon.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: g.Namespace, Name: g.Placement},
			Configs: []addonv1alpha1.AddOnConfig{{
				ConfigGroupResource: configs, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: g.Namespace, Name: g.Configuration},
			}},
			RolloutStrategy: clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.Progressive,
				Progressive: &clusterv1alpha1.RolloutProgressive{
					MaxConcurrency: g.Limits.MaxConcurrency,
					RolloutConfig: clusterv1alpha1.RolloutConfig{
						MinSuccessTime: metav1.Duration{Duration: g.Limits.MinSuccessTime}, MaxFailures: g.Limits.MaxFailures,
						ProgressDeadline: g.Limits.ProgressDeadline.String(),
					},
				},
			},
		})
	}
	return addon
}

// CheckAddOn returns why the strategy of the ClusterManagementAddOn must not be carried out: ErrStrategy and
// ErrConfigurations, joined, or nil.
func CheckAddOn(addon *addonv1alpha1.ClusterManagementAddOn) error {
	var faults []error
	fault := func(err error, format string, args ...any) {
		faults = append(faults, fmt.Errorf("ClusterManagementAddOn %s: %w: %s", addon.Name, err, fmt.Sprintf(format, args...)))
	}
	if value := addon.Annotations[addonv1alpha1.AddonLifecycleAnnotationKey]; value == addonv1alpha1.AddonLifecycleSelfManageAnnotationValue {
		fault(ErrStrategy, "remove the annotation %s: %s; with it nothing carries the strategy out", addonv1alpha1.AddonLifecycleAnnotationKey, value)
	}
	if addon.Spec.InstallStrategy.Type != addonv1alpha1.AddonInstallStrategyPlacements {
		fault(ErrStrategy, "spec.installStrategy.type is %q, want %q", addon.Spec.InstallStrategy.Type, addonv1alpha1.AddonInstallStrategyPlacements)
	}
	for i, p := range addon.Spec.InstallStrategy.Placements {
		field := fmt.Sprintf("spec.installStrategy.placements[%d]", i)
		if refs := references(p); len(refs) != 1 {
			fault(ErrConfigurations, "%s.configs has %d AddOnDeploymentConfigs, want one; without one every cluster is installed at once", field, len(refs))
		}
		limits, name := progressing(p.RolloutStrategy)
		switch {
		case limits == nil:
			fault(ErrStrategy, "%s.rolloutStrategy.type is %q; want Progressive or ProgressivePerGroup", field, p.RolloutStrategy.Type)
		case limits.ProgressDeadline == "" || limits.ProgressDeadline == "None":
			fault(ErrStrategy, "%s.rolloutStrategy.%s.progressDeadline is not set; only clusters that exceed it count as failures", field, name)
		default:
			if deadline, err := time.ParseDuration(limits.ProgressDeadline); err != nil || deadline <= limits.MinSuccessTime.Duration {
				fault(ErrStrategy, "%s.rolloutStrategy.%s.progressDeadline is %q; want a duration above minSuccessTime, %s",
					field, name, limits.ProgressDeadline, limits.MinSuccessTime.Duration)
			}
		}
	}
	return errors.Join(faults...)
}

func progressing(s clusterv1alpha1.RolloutStrategy) (*clusterv1alpha1.RolloutConfig, string) {
	switch {
	case s.Type == clusterv1alpha1.Progressive && s.Progressive != nil:
		return &s.Progressive.RolloutConfig, "progressive"
	case s.Type == clusterv1alpha1.ProgressivePerGroup && s.ProgressivePerGroup != nil:
		return &s.ProgressivePerGroup.RolloutConfig, "progressivePerGroup"
	}
	return nil, ""
}

func references(p addonv1alpha1.PlacementStrategy) []string {
	var refs []string
	for _, c := range p.Configs {
		if c.Group == addonv1alpha1.GroupName && c.Resource == "addondeploymentconfigs" {
			refs = append(refs, c.Namespace+"/"+c.Name)
		}
	}
	return refs
}

// GroupOf returns the Placement, NAMESPACE/NAME, that decides about each cluster. selected has the clusters of each
// Placement. A cluster of several Placements takes the last one that the strategy lists.
func GroupOf(addon *addonv1alpha1.ClusterManagementAddOn, selected map[string][]string) map[string]string {
	groups := map[string]string{}
	for _, p := range addon.Spec.InstallStrategy.Placements {
		for _, cluster := range selected[p.Namespace+"/"+p.Name] {
			groups[cluster] = p.Namespace + "/" + p.Name
		}
	}
	return groups
}

// Check returns why nothing may be written to any cluster: by the strategy, its Placements, and the clusters that each
// selects, by NAMESPACE/NAME.
func Check(addon *addonv1alpha1.ClusterManagementAddOn, placements []*clusterv1beta1.Placement, selected map[string][]string) error {
	faults := []error{CheckAddOn(addon), CheckOverlaps(addon, selected, Canaries)}
	for _, p := range placements {
		faults = append(faults, CheckPlacement(p))
	}
	return errors.Join(faults...)
}

// CheckOverlaps returns an ErrConfigurations for clusters that two Placements select with different configurations,
// unless the later one is listed in exceptions, such as canaries: there the order is the intention.
func CheckOverlaps(addon *addonv1alpha1.ClusterManagementAddOn, selected map[string][]string, exceptions ...string) error {
	first := map[string]int{}
	placements := addon.Spec.InstallStrategy.Placements
	for i, p := range placements {
		for _, cluster := range selected[p.Namespace+"/"+p.Name] {
			earlier, twice := first[cluster]
			if !twice {
				first[cluster] = i
				continue
			}
			before := placements[earlier]
			if !slices.Contains(exceptions, p.Name) && !slices.Equal(references(before), references(p)) {
				return fmt.Errorf("ClusterManagementAddOn %s: %w: cluster %s is selected by %s/%s with %s and by %s/%s with %s; "+
					"leave it out of one, or give both the same", addon.Name, ErrConfigurations, cluster, before.Namespace, before.Name,
					strings.Join(references(before), ", "), p.Namespace, p.Name, strings.Join(references(p), ", "))
			}
		}
	}
	return nil
}
