// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/hub"
	snofleet "github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/patch"
)

var (
	errSelectNone = errors.New("name clusters, or select some with --selector")
	errUnprepared = errors.New("the add-on is not ready to release")
)

// changedRow is what became of a cluster.
type changedRow struct {
	Cluster string `json:"cluster"`
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
}

func (f *fleet) printChanges(kind string, rows []changedRow) error {
	t, names := table("CLUSTER", "OUTCOME", "MESSAGE"), []string(nil)
	for _, r := range rows {
		row(t, r.Cluster, r.Outcome, r.Message)
		names = append(names, "managedcluster/"+r.Cluster)
	}
	return f.print(answer{kind: kind, value: map[string]any{"clusters": rows}, names: names, table: t})
}

// chosen returns the clusters to change: never all of a hub by accident.
func (f *fleet) chosen(ctx context.Context, names []string) (*hub.Hub, []clusterv1.ManagedCluster, error) {
	if len(names) == 0 && f.selector == "" {
		return nil, nil, errSelectNone
	}
	h, err := f.connectHub()
	if err != nil {
		return nil, nil, err
	}
	chosen, err := f.clusters(ctx, h, names)
	return h, chosen, err
}

func newFleetOptOut(p *program) *cobra.Command {
	f := &fleet{program: p}
	var undo bool
	command := newCommand("opt-out CLUSTER...", "Keep clusters out of the fleet, or bring them back", `
Set the label `+snofleet.OptOutLabel+` on ManagedClusters. The Placements of the fleet leave them out, so Open Cluster
Management deletes the add-on there, and every field is released first. This command does not wait for that; undo does.

With --undo the label is removed, and the clusters get the add-on again in the order of the rollout.`, `
		# Two clusters
		kubectl sno fleet opt-out east-1 east-2
		# Back again
		kubectl sno fleet opt-out --undo -l region=east`, p.bindOutput, f.bindSelector, f.bindYes)
	command.Flags().BoolVar(&undo, "undo", false, "Remove the label.")
	command.RunE = func(command *cobra.Command, names []string) error {
		ctx := command.Context()
		h, chosen, err := f.chosen(ctx, names)
		if err != nil {
			return err
		}
		outcome := "brought back"
		if !undo {
			outcome = "opted out"
			if err := checkOptOut(ctx, h); err != nil {
				return err
			}
		}
		if err := f.confirm(len(chosen), outcome); err != nil {
			return err
		}
		var rows []changedRow
		var failures []error
		for i := range chosen {
			r := changedRow{Cluster: chosen[i].Name, Outcome: "unchanged"}
			changed, err := label(ctx, h, &chosen[i], !undo)
			if changed {
				r.Outcome = outcome
			}
			failures, rows = append(failures, err), append(rows, r)
		}
		return errors.Join(append(failures, f.printChanges("FleetOptOut", rows))...)
	}
	return command
}

// label sets or removes the label of the opt-out, and reports whether it did. A label of a person counts, too.
func label(ctx context.Context, h *hub.Hub, c *clusterv1.ManagedCluster, optOut bool) (bool, error) {
	if _, is := c.Labels[snofleet.OptOutLabel]; is == optOut {
		return false, nil
	}
	value := "null"
	if optOut {
		value = `""`
	}
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, snofleet.OptOutLabel, value))
	if err := h.Patch(ctx, c, change, client.FieldOwner(patch.FieldOwner("fleet"))); err != nil {
		return false, fmt.Errorf("labelling ManagedCluster %s: %w", c.Name, err)
	}
	return true, nil
}

func newFleetUndo(p *program) *cobra.Command {
	f := &fleet{program: p}
	var force bool
	var timeout time.Duration
	command := newCommand("undo CLUSTER...", "Remove the add-on from clusters, which releases every field first", `
Opt clusters out of the fleet and wait until the add-on is gone there. On each cluster the controllers stop, Jobs release every field that a
module owns, and only then everything is deleted. The clusters stay opted out; opt-out --undo brings them back.

A cluster that could not release, such as one that is away, is named with the reason. It goes on as soon as it can, or gives the add-on up
with --force: after the timeout the hub forgets the add-on there, and the fields stay as they are. "kubectl sno release" on that cluster
releases them.`, `
		# A region, half an hour for all of them
		kubectl sno fleet undo -l region=east --timeout 30m
		# A cluster that does not exist any more
		kubectl sno fleet undo east-1 --timeout 1m --force`, p.bindOutput, f.bindSelector, f.bindYes)
	command.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "How long to wait.")
	command.Flags().BoolVar(&force, "force", false, "Remove the add-on after the timeout from clusters that have not released their fields.")
	command.RunE = func(command *cobra.Command, names []string) error {
		ctx := command.Context()
		h, chosen, err := f.chosen(ctx, names)
		if err != nil {
			return err
		}
		if err := checkOptOut(ctx, h); err != nil {
			return err
		}
		u := undoing{hub: h, chosen: chosen}
		if err := u.read(ctx); err != nil {
			return err
		}
		if faults := u.unprepared(); len(faults) > 0 && !force {
			return errors.Join(faults...)
		}
		if err := f.confirm(len(chosen), "opted out and released"); err != nil {
			return err
		}
		before := u.installed()
		for i := range chosen {
			if _, err := label(ctx, h, &chosen[i], true); err != nil {
				return err
			}
		}
		if err := u.wait(ctx, timeout, f.progress); err != nil {
			return err
		}
		rows, left := u.outcomes(ctx, before, force)
		if err := f.printChanges("FleetUndo", rows); err != nil {
			return err
		}
		if left > 0 {
			fmt.Fprintf(f.ErrOut, "%d clusters have not released their fields; they go on as soon as they can, and --force gives them up.\n", left)
			return exit(overview.ExitWaiting)
		}
		return nil
	}
	return command
}

// undoing is the removal of the add-on from clusters.
type undoing struct {
	hub    *hub.Hub
	chosen []clusterv1.ManagedCluster
	in     overview.Inputs
}

// read reads the add-ons that the clusters still have.
func (u *undoing) read(ctx context.Context) error {
	in, err := u.hub.Read(ctx, "", false)
	in.Clusters = slices.DeleteFunc(in.Clusters, func(c clusterv1.ManagedCluster) bool { return !u.isChosen(c.Name) })
	in.AddOns = slices.DeleteFunc(in.AddOns, func(a addonv1alpha1.ManagedClusterAddOn) bool { return !u.isChosen(a.Namespace) })
	u.in = in
	return err
}

func (u *undoing) isChosen(name string) bool {
	return slices.ContainsFunc(u.chosen, func(c clusterv1.ManagedCluster) bool { return c.Name == name })
}

func (u *undoing) installed() (names []string) {
	for _, a := range u.in.AddOns {
		names = append(names, a.Namespace)
	}
	return names
}

// unprepared returns the clusters whose add-on would be deleted without a release: its manager has not seen it.
func (u *undoing) unprepared() (faults []error) {
	for i := range u.in.AddOns {
		a := &u.in.AddOns[i]
		ref, err := configuration.Reference(a)
		if err != nil || u.in.Configurations[ref.Namespace+"/"+ref.Name].DryRun || slices.Contains(a.Finalizers, addonv1alpha1.AddonPreDeleteHookFinalizer) {
			continue
		}
		faults = append(faults, fmt.Errorf("cluster %s: %w: ManagedClusterAddOn %s/%s lacks the finalizer %s, so nothing would be released; "+
			"start the manager of the add-on, or give the fields up with --force", a.Namespace, errUnprepared, a.Namespace, a.Name, addonv1alpha1.AddonPreDeleteHookFinalizer))
	}
	return faults
}

const undoInterval = 2 * time.Second

// wait returns at the timeout without an error.
func (u *undoing) wait(ctx context.Context, timeout time.Duration, progress func(string)) error {
	defer progress("")
	err := wait.PollUntilContextTimeout(ctx, undoInterval, timeout, true, func(ctx context.Context) (bool, error) {
		left, err := u.hub.AddOns(ctx, snofleet.AddOn)
		left = slices.DeleteFunc(left, func(a addonv1alpha1.ManagedClusterAddOn) bool { return !u.isChosen(a.Namespace) })
		progress(fmt.Sprintf("%d of %d clusters have not released their fields", len(left), len(u.chosen)))
		return len(left) == 0, err
	})
	if ctx.Err() != nil || err != nil && !wait.Interrupted(err) && !errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(ctx.Err(), err)
	}
	return u.read(ctx)
}

// outcomes returns what became of each cluster, and how many have not released their fields. With force these lose the
// finalizers that the add-on framework set for it.
func (u *undoing) outcomes(ctx context.Context, before []string, force bool) (rows []changedRow, left int) {
	states := map[string]overview.Row{}
	for _, r := range overview.New(u.in) {
		states[r.Cluster] = r
	}
	for _, c := range u.chosen {
		i := slices.IndexFunc(u.in.AddOns, func(a addonv1alpha1.ManagedClusterAddOn) bool { return a.Namespace == c.Name })
		switch {
		case i < 0 && slices.Contains(before, c.Name):
			rows = append(rows, changedRow{c.Name, "released", ""})
			continue
		case i < 0:
			rows = append(rows, changedRow{c.Name, "opted out", "it had no add-on"})
			continue
		}
		state := states[c.Name]
		r := changedRow{c.Name, "not released", fmt.Sprintf("%s, %s: %s", state.State, state.Reason, state.Message)}
		left++
		if force {
			if err := u.force(ctx, &u.in.AddOns[i]); err != nil {
				r.Message = err.Error()
			} else {
				r.Outcome = "given up"
				left--
			}
		}
		rows = append(rows, r)
	}
	return rows, left
}

func (u *undoing) force(ctx context.Context, a *addonv1alpha1.ManagedClusterAddOn) error {
	if a.DeletionTimestamp == nil {
		return fmt.Errorf("%w: nothing has deleted ManagedClusterAddOn %s/%s yet; is the add-on manager of the hub running", errUnprepared, a.Namespace, a.Name)
	}
	before := a.DeepCopy()
	a.Finalizers = slices.DeleteFunc(a.Finalizers, func(name string) bool {
		return name == addonv1alpha1.AddonPreDeleteHookFinalizer || name == addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer
	})
	if err := u.hub.Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of ManagedClusterAddOn %s/%s: %w", a.Namespace, a.Name, err)
	}
	return nil
}
