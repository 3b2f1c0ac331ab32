// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	framework "open-cluster-management.io/addon-framework/pkg/agent"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/feedback"
)

var (
	// ErrNotOpenShift is returned for a cluster without the claim of its control-plane topology. Nothing is written there.
	ErrNotOpenShift = errors.New("the topology of the cluster is not known")
	// ErrDeleting is returned as long as it is not certain that a deleted add-on stays deleted.
	ErrDeleting = errors.New("waiting before the release")
	// ErrManifests is returned for a configuration of other manifests than those of this program.
	ErrManifests = errors.New("the configuration is for other manifests")
	// ErrNotSettled is returned by the health check.
	ErrNotSettled = errors.New("not settled")
)

// DeletionDelay is how long after its deletion an add-on is released. Open Cluster Management deletes the add-on of a
// cluster that is in no PlacementDecision for a moment, as when decisions are distributed anew, and creates it again.
const DeletionDelay = 30 * time.Second

// Agent implements agent.AgentAddon. A spoke gets no client of the hub, and works on while that is away (R-FLT-1). All
// fields are required. The functions read caches: they are called for each cluster and each change.
type Agent struct {
	Configuration func(namespace, name string) (*addonv1alpha1.AddOnDeploymentConfig, error)
	// Hash is [Hash]. Only configurations that name it are rendered.
	Hash string
	// Works returns the ManifestWorks of the add-on on a cluster.
	Works func(cluster string) []*workv1.ManifestWork
	// Installing returns how far sno-install is with a cluster, nil if it is not at work there.
	Installing func(cluster string) *feedback.Installing
	// Selected reports whether a Placement of the add-on selects the cluster.
	Selected func(cluster string) (bool, error)
	Now      func() time.Time
}

var _ framework.AgentAddon = &Agent{}

// Manifests implements agent.AgentAddon. After an error a spoke keeps what it has.
func (a *Agent) Manifests(cluster *clusterv1.ManagedCluster, addon *addonv1alpha1.ManagedClusterAddOn) ([]runtime.Object, error) {
	if fleet.Claim(cluster, fleet.ClaimControlPlane) == "" {
		return nil, fmt.Errorf("%w: ManagedCluster %s has no claim %s; it is no OpenShift cluster, or nothing publishes the claim there",
			ErrNotOpenShift, cluster.Name, fleet.ClaimControlPlane)
	}
	release, err := a.releases(addon)
	if err != nil {
		return nil, err
	}
	works := a.Works(cluster.Name)
	ref, err := configuration.Reference(addon)
	if err != nil && addon.DeletionTimestamp != nil { // the add-on of a cluster in no Placement has no configuration any more
		if of := installed(works); len(of) > 0 {
			ref, err = of[0], nil
		}
	}
	if err != nil {
		return nil, err
	}
	object, err := a.Configuration(ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("reading AddOnDeploymentConfig %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	config, err := configuration.Parse(object)
	if err != nil {
		return nil, err
	}
	objects, err := Objects(config, ref, feedback.Read(works...), release)
	if err != nil || release || config.DryRun || config.Manifests == a.Hash {
		return objects, err
	}
	if of := installed(works); len(of) != 1 || of[0] != ref {
		config.Manifests = a.Hash
		return nil, fmt.Errorf("AddOnDeploymentConfig %s/%s: %w: to install those of this manager set %s to %s, in an AddOnDeploymentConfig whose name ends in -%s",
			ref.Namespace, ref.Name, ErrManifests, configuration.VariableManifests, a.Hash, config.Hash())
	}
	return keep(works, objects)
}

// installed returns the configurations of the Deployments in ManifestWorks, each once.
func installed(works []*workv1.ManifestWork) (of []addonv1alpha1.ConfigReferent) {
	objects, _ := objectsOf(works) // what cannot be read is no Deployment
	for _, o := range objects {
		if namespace, name, is := strings.Cut(o.GetAnnotations()[fleet.ConfigurationAnnotation], "/"); is {
			of = append(of, addonv1alpha1.ConfigReferent{Namespace: namespace, Name: name})
		}
	}
	slices.SortFunc(of, func(a, b addonv1alpha1.ConfigReferent) int {
		return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return slices.Compact(of)
}

// keep returns what a cluster has, from a manager with other manifests: a new version of the manager must not change
// all clusters at once. Our claims are as they are now, and the Jobs are of this version: no cluster has them.
func keep(works []*workv1.ManifestWork, rendered []runtime.Object) ([]runtime.Object, error) {
	objects, err := objectsOf(works)
	if err != nil {
		return nil, err
	}
	var kept []runtime.Object
	current := func(o runtime.Object) bool {
		return slices.Contains([]string{"ClusterClaim", "Job"}, o.GetObjectKind().GroupVersionKind().Kind)
	}
	for _, o := range objects {
		if !current(o) {
			kept = append(kept, o)
		}
	}
	for _, o := range rendered {
		if current(o) {
			kept = append(kept, o)
		}
	}
	return kept, nil
}

func objectsOf(works []*workv1.ManifestWork) (all []*unstructured.Unstructured, err error) {
	for _, work := range works {
		for _, m := range work.Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			err = errors.Join(err, object.UnmarshalJSON(m.Raw))
			all = append(all, object)
		}
	}
	return all, err
}

// releases reports whether the fields are being released. A deleted add-on of a cluster that is still selected comes
// back at once: releasing its fields would only revert the cluster for a moment.
func (a *Agent) releases(addon *addonv1alpha1.ManagedClusterAddOn) (bool, error) {
	if addon.DeletionTimestamp == nil {
		return false, nil
	}
	if wait := addon.DeletionTimestamp.Add(DeletionDelay).Sub(a.Now()); wait > 0 {
		return false, fmt.Errorf("%w: the add-on of cluster %s was deleted less than %s ago", ErrDeleting, addon.Namespace, DeletionDelay)
	}
	selected, err := a.Selected(addon.Namespace)
	if err != nil {
		return false, fmt.Errorf("reading whether cluster %s is selected: %w", addon.Namespace, err)
	}
	return !selected, nil
}

// GetAgentAddonOptions implements agent.AgentAddon.
func (a *Agent) GetAgentAddonOptions() framework.AgentAddonOptions {
	_, configs := feedback.Topology()
	configs = append(configs, feedback.Controllers())
	probed := configs[:1:1] // the Infrastructure, which a dry run reads too
	for _, m := range feedback.Modules() {
		configs, probed = append(configs, m.ManifestConfig()), append(probed, m.ManifestConfig())
	}
	var fields []framework.ProbeField
	for _, p := range probed {
		// For an identifier that equals one of ManifestConfigs the framework drops conditionRules and feedbackScrapeType.
		p.ResourceIdentifier.Name = "*"
		fields = append(fields, framework.ProbeField{ResourceIdentifier: p.ResourceIdentifier, ProbeRules: p.FeedbackRules})
	}
	return framework.AgentAddonOptions{
		AddonName: fleet.AddOn,
		SupportedConfigGVRs: []schema.GroupVersionResource{{
			Group: addonv1alpha1.GroupVersion.Group, Version: addonv1alpha1.GroupVersion.Version, Resource: "addondeploymentconfigs",
		}},
		// Without it the agent is deployed to all selected clusters at once, whatever the strategy of the rollout.
		ConfigCheckEnabled: true,
		ManifestConfigs:    configs,
		HealthProber: &framework.HealthProber{Type: framework.HealthProberTypeWork, WorkProber: &framework.WorkHealthProber{
			ProbeFields: fields, HealthChecker: a.healthy,
		}},
		AgentDeployTriggerClusterFilter: func(before, after *clusterv1.ManagedCluster) bool {
			return !equality.Semantic.DeepEqual(before.Status.ClusterClaims, after.Status.ClusterClaims)
		},
	}
}

// healthy is the health of the add-on: an ErrNotSettled with the reason of each module that is not settled, and the
// phase of the cluster's installation.
func (a *Agent) healthy(results []framework.FieldResult, cluster *clusterv1.ManagedCluster, _ *addonv1alpha1.ManagedClusterAddOn) error {
	work := &workv1.ManifestWork{}
	for _, r := range results {
		id := r.ResourceIdentifier
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta:    workv1.ManifestResourceMeta{Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name},
			StatusFeedbacks: r.FeedbackResult,
		})
	}
	var open []string
	for _, m := range feedback.Read(work).Modules {
		if !m.Settled {
			open = append(open, m.Module+" ("+m.Reason+")")
		}
	}
	if i := a.Installing(cluster.Name); i != nil {
		open = append(open, "installation of the cluster ("+i.Phase+")")
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: %s", ErrNotSettled, strings.Join(open, ", "))
	}
	return nil
}
