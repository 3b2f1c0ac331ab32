// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/patch"
)

// Inputs are the objects of a hub.
type Inputs struct {
	Clusters []clusterv1.ManagedCluster
	AddOns   []addonv1alpha1.ManagedClusterAddOn
	// Works may lack those of clusters whose add-on needs none ([NeedsWorks]).
	Works []workv1.ManifestWork
	// AllWorks is set if they have those of every cluster.
	AllWorks bool
	// Configurations has the configurations that could be read, by NAMESPACE/NAME.
	Configurations map[string]configuration.Configuration
	Groups         map[string]string // the Placement of each cluster
}

// Row is a cluster.
type Row struct {
	Cluster        string            `json:"cluster"`
	Labels         map[string]string `json:"labels,omitempty"`
	ControlPlane   string            `json:"controlPlaneTopology,omitempty"`
	Infrastructure string            `json:"infrastructureTopology,omitempty"`
	Workers        *int64            `json:"workers,omitempty"`
	Group          string            `json:"group,omitempty"`
	Configuration  string            `json:"configuration,omitempty"`
	// Version is that of the images that the spoke has reported, or of its configuration.
	Version string           `json:"version,omitempty"`
	Images  []string         `json:"images,omitempty"`
	State   State            `json:"state"`
	Module  string           `json:"module,omitempty"` // whose reason it is
	Reason  string           `json:"reason"`
	Message string           `json:"message,omitempty"`
	Since   *time.Time       `json:"since,omitempty"`
	Modules []feedback.State `json:"modules,omitempty"`
}

// Table has a row for each cluster with the add-on or the label of the opt-out, the worst first.
type Table []Row

// New returns the table of a hub.
func New(in Inputs) Table {
	addons := map[string]*addonv1alpha1.ManagedClusterAddOn{}
	for i := range in.AddOns {
		if in.AddOns[i].Name == fleet.AddOn {
			addons[in.AddOns[i].Namespace] = &in.AddOns[i]
		}
	}
	works, installing := map[string][]*workv1.ManifestWork{}, map[string]*feedback.Installing{}
	for i := range in.Works {
		switch w := &in.Works[i]; w.Labels[addonv1alpha1.AddonLabelKey] {
		case fleet.AddOn:
			works[w.Namespace] = append(works[w.Namespace], w)
		case executor.AddOn: // that these are not applied is in the message of the add-on
			installing[w.Namespace] = cmp.Or(installing[w.Namespace], feedback.Read(w).Installing)
		}
	}
	var table Table
	for i := range in.Clusters {
		c := &in.Clusters[i]
		_, optedOut := c.Labels[fleet.OptOutLabel]
		if addon := addons[c.Name]; addon != nil || optedOut {
			report := feedback.Read(works[c.Name]...)
			report.Installing = installing[c.Name]
			table = append(table, in.row(c, addon, report))
		}
	}
	slices.SortFunc(table, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.State, a.State), strings.Compare(a.Cluster, b.Cluster))
	})
	return table
}

func (in Inputs) row(c *clusterv1.ManagedCluster, addon *addonv1alpha1.ManagedClusterAddOn, report feedback.Report) Row {
	row := Row{
		Cluster: c.Name, Labels: c.Labels, ControlPlane: report.ControlPlane, Infrastructure: report.Infrastructure, Workers: report.Workers,
		Group: in.Groups[c.Name], Images: report.Images, Modules: report.Modules,
	}
	row.ControlPlane = cmp.Or(row.ControlPlane, fleet.Claim(c, fleet.ClaimControlPlane))
	row.Infrastructure = cmp.Or(row.Infrastructure, fleet.Claim(c, fleet.ClaimInfrastructure))
	if workers, err := strconv.ParseInt(fleet.Claim(c, fleet.ClaimWorkers), 10, 64); err == nil && row.Workers == nil {
		row.Workers = &workers
	}
	set := func(state State, reason, message string, since *time.Time) Row {
		row.State, row.Reason, row.Message, row.Since = state, reason, message, since
		return row
	}
	if addon == nil {
		return set(OptedOut, "OptedOut", "The cluster has the label "+fleet.OptOutLabel, nil)
	}
	ref, err := configuration.Reference(addon)
	if err == nil {
		row.Configuration = ref.Namespace + "/" + ref.Name
	}
	config := in.Configurations[row.Configuration]
	row.Version = cmp.Or(versionOf(report.Images...), versionOf(config.Image))
	applied := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
	available := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case available != nil && available.Status != metav1.ConditionTrue:
		return set(Away, available.Reason, available.Message, &available.LastTransitionTime.Time)
	case addon.DeletionTimestamp != nil:
		return set(Removing, "Releasing", hookMessage(addon), &addon.DeletionTimestamp.Time)
	case err != nil && len(addon.Status.ConfigReferences) > 1:
		return set(Refused, "Configuration", err.Error(), nil)
	case err != nil:
		return set(Installing, "WaitingForTurn", "The rollout has not given the cluster a configuration yet", nil)
	case report.Installing != nil: // until its end namespaces and kinds may be missing
		return set(Installing, "ClusterInstalling", strings.TrimSuffix(report.Installing.Phase+": "+report.Installing.Message, ": "), nil)
	case len(report.NotApplied) > 0:
		return set(Refused, "ManifestsNotApplied", strings.Join(report.NotApplied, "; "), nil)
	case applied != nil && applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, executor.ErrWaiting.Error()):
		return set(Installing, "WaitingForRights", applied.Message, &applied.LastTransitionTime.Time)
	case applied != nil && applied.Status == metav1.ConditionFalse:
		return set(Refused, applied.Reason, applied.Message, &applied.LastTransitionTime.Time)
	case config.DryRun:
		return set(DryRun, "DryRun", "The configuration is a dry run", nil)
	case len(report.Modules) == 0 && !in.AllWorks && !NeedsWorks(addon):
		healthy := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
		return set(Settled, patch.ReasonAsExpected, "", &healthy.LastTransitionTime.Time)
	case len(report.Modules) == 0:
		return set(Installing, "NotReported", "The cluster has reported no module yet", nil)
	}
	worst, state := worstOf(report.Modules)
	for _, r := range report.Rollouts {
		its := Progressing
		if r.Failing {
			its = NotInForce
		}
		if its > state && (r.Failing || state != Installing) {
			worst, state = feedback.State{Module: r.Module, Reason: r.Reason, Message: r.Message}, its
		}
	}
	reason, message := worst.Reason, worst.Message
	if state > DryRun {
		row.Module = worst.Module
		message = strings.TrimSuffix(worst.Module+": "+message, ": ")
	}
	return set(state, cmp.Or(reason, "NotReported"), message, worst.Since)
}

// NeedsWorks reports whether the state of an add-on's cluster is not known without its ManifestWorks. It is settled
// when Open Cluster Management has finished the rollout of the configuration there, and the manager reports the add-on
// as available. That is as old as the last reconciliation of the manager.
func NeedsWorks(addon *addonv1alpha1.ManagedClusterAddOn) bool {
	conditions := addon.Status.Conditions
	return addon.DeletionTimestamp == nil && (!meta.IsStatusConditionTrue(conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable) ||
		!meta.IsStatusConditionTrue(conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied) ||
		slices.ContainsFunc(addon.Status.ConfigReferences, func(r addonv1alpha1.ConfigReference) bool {
			return r.DesiredConfig == nil || r.LastAppliedConfig == nil || *r.DesiredConfig != *r.LastAppliedConfig
		}))
}

// versionOf returns the tags, or the beginning of the digests, of images: each once.
func versionOf(images ...string) string {
	var versions []string
	for _, image := range images {
		_, version, pinned := strings.Cut(image, "@sha256:")
		if !pinned {
			_, version, _ = strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		}
		if version = version[:min(len(version), 20)]; !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return strings.Join(versions, ",")
}

func hookMessage(addon *addonv1alpha1.ManagedClusterAddOn) string {
	if hook := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnHookManifestCompleted); hook != nil {
		return hook.Message
	}
	return "The fields are being released"
}

func worstOf(modules []feedback.State) (feedback.State, State) {
	stateOf := func(m feedback.State) State {
		switch {
		case m.Reason == "":
			return Installing
		case m.Settled:
			return Settled
		case m.InForce && !m.Failing:
			return Progressing
		}
		return NotInForce
	}
	worst := modules[0]
	for _, m := range modules[1:] {
		// Of settled ones the first that is in force: that others are not needed is of less interest.
		if stateOf(m) > stateOf(worst) || stateOf(worst) == Settled && stateOf(m) == Settled && m.InForce && !worst.InForce {
			worst = m
		}
	}
	return worst, stateOf(worst)
}

// Filter returns the rows whose clusters have the labels, and one of the reasons, of the cluster or of a module, if any
// are named.
func (t Table) Filter(selector labels.Selector, reasons ...string) Table {
	return slices.DeleteFunc(slices.Clone(t), func(r Row) bool {
		named := slices.Contains(reasons, r.Reason) ||
			slices.ContainsFunc(r.Modules, func(m feedback.State) bool { return slices.Contains(reasons, m.Reason) })
		return !selector.Matches(labels.Set(r.Labels)) || len(reasons) > 0 && !named
	})
}

// Worst returns the most severe state, Settled for no clusters.
func (t Table) Worst() State {
	var worst State
	for _, r := range t {
		worst = max(worst, r.State)
	}
	return worst
}
