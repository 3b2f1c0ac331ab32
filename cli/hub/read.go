// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/fleet/rollout"
)

const (
	parallel = 10 // requests for the works of single clusters
	fewWorks = 100
)

// Manager returns why the manager of the add-on does not run, or "" if its Lease is held. What it has reported about
// add-ons may then be old.
func (h *Hub) Manager(ctx context.Context, now time.Time) string {
	lease := &coordinationv1.Lease{}
	if err := h.Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: fleet.Manager}, lease); err != nil {
		return err.Error()
	}
	s := lease.Spec
	switch {
	case s.RenewTime == nil || s.LeaseDurationSeconds == nil || ptr.Deref(s.HolderIdentity, "") == "":
		return fmt.Sprintf("nobody holds Lease %s/%s", lease.Namespace, lease.Name)
	case now.After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)):
		return fmt.Sprintf("Lease %s/%s was last renewed %s ago", lease.Namespace, lease.Name, duration.HumanDuration(now.Sub(s.RenewTime.Time)))
	}
	return ""
}

// Read returns the inputs of the table of a fleet. The works of clusters whose state is known without them are read
// with details only.
func (h *Hub) Read(ctx context.Context, selector string, details bool) (overview.Inputs, error) {
	var in overview.Inputs
	lists, listing := errgroup.WithContext(ctx)
	lists.Go(func() (err error) {
		in.Clusters, err = h.Clusters(listing, selector)
		return err
	})
	lists.Go(func() (err error) {
		in.AddOns, err = h.AddOns(listing, fleet.AddOn)
		return err
	})
	lists.Go(func() error {
		strategy, err := h.Strategy(listing)
		if err != nil || strategy == nil {
			return err
		}
		selected, err := h.Selected(listing, strategy)
		in.Groups = rollout.GroupOf(strategy, selected)
		return err
	})
	if err := lists.Wait(); err != nil {
		return in, err
	}
	if err := h.readConfigurations(ctx, &in); err != nil {
		return in, err
	}
	return in, h.readWorks(ctx, &in, details)
}

// readConfigurations reads those that clusters have. The state of a cluster tells of one that is missing or invalid.
func (h *Hub) readConfigurations(ctx context.Context, in *overview.Inputs) error {
	in.Configurations = map[string]configuration.Configuration{}
	tried := map[string]bool{}
	for i := range in.AddOns {
		ref, err := configuration.Reference(&in.AddOns[i])
		name := ref.Namespace + "/" + ref.Name
		if err != nil || tried[name] {
			continue
		}
		tried[name] = true
		var object addonv1alpha1.AddOnDeploymentConfig
		if err := h.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading AddOnDeploymentConfig %s: %w", name, err)
		}
		if config, err := configuration.Parse(&object); err == nil {
			in.Configurations[name] = config
		}
	}
	return nil
}

func (h *Hub) readWorks(ctx context.Context, in *overview.Inputs, details bool) error {
	in.AllWorks = details
	listed, names := sets.New[string](), sets.New[string]()
	for _, c := range in.Clusters {
		listed.Insert(c.Name)
	}
	for i := range in.AddOns {
		if a := &in.AddOns[i]; listed.Has(a.Namespace) && (details || overview.NeedsWorks(a)) {
			names.Insert(a.Namespace)
		}
	}
	var mu sync.Mutex
	add := func(work workv1.ManifestWork) {
		mu.Lock()
		defer mu.Unlock()
		in.Works = append(in.Works, work)
	}
	if len(names) > fewWorks {
		return h.works(ctx, "", func(work workv1.ManifestWork) {
			if names.Has(work.Namespace) {
				add(work)
			}
		})
	}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for name := range names {
		group.Go(func() error { return h.works(reading, name, add) })
	}
	return group.Wait()
}

// Strategy returns the ClusterManagementAddOn, nil if there is none.
func (h *Hub) Strategy(ctx context.Context) (*addonv1alpha1.ClusterManagementAddOn, error) {
	addon := &addonv1alpha1.ClusterManagementAddOn{}
	if err := h.Get(ctx, client.ObjectKey{Name: fleet.AddOn}, addon); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ClusterManagementAddOn %s: %w", fleet.AddOn, err)
	}
	return addon, nil
}

// Selected returns the clusters that each Placement of the strategy selects, by NAMESPACE/NAME.
func (h *Hub) Selected(ctx context.Context, strategy *addonv1alpha1.ClusterManagementAddOn) (map[string][]string, error) {
	selected := map[string][]string{}
	for _, p := range strategy.Spec.InstallStrategy.Placements {
		var decisions clusterv1beta1.PlacementDecisionList
		if err := h.List(ctx, &decisions, client.InNamespace(p.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: p.Name}); err != nil {
			return nil, fmt.Errorf("listing the decisions of Placement %s/%s: %w", p.Namespace, p.Name, err)
		}
		name := p.Namespace + "/" + p.Name
		for _, d := range decisions.Items {
			for _, cluster := range d.Status.Decisions {
				selected[name] = append(selected[name], cluster.ClusterName)
			}
		}
	}
	return selected, nil
}

// Placements returns the Placements of the strategy, in its order.
func (h *Hub) Placements(ctx context.Context, strategy *addonv1alpha1.ClusterManagementAddOn) ([]*clusterv1beta1.Placement, error) {
	var all []*clusterv1beta1.Placement
	for _, p := range strategy.Spec.InstallStrategy.Placements {
		var placement clusterv1beta1.Placement
		if err := h.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Name}, &placement); err != nil {
			return nil, fmt.Errorf("reading Placement %s/%s: %w", p.Namespace, p.Name, err)
		}
		all = append(all, &placement)
	}
	return all, nil
}
