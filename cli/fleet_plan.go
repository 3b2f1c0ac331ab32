// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/hub"
	"github.com/solonode/sno/cli/plan"
	snofleet "github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/configuration"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/fleet/overview"
	fleetplan "github.com/solonode/sno/fleet/plan"
	"github.com/solonode/sno/fleet/rollout"
	"github.com/solonode/sno/patch"
)

var errNoStrategy = errors.New("nothing to plan")

// planning are the flags of fleet plan.
type planning struct {
	fleet
	placement, configuration, executor string
	grant                              bool
	timeout                            time.Duration
}

const (
	planInterval = time.Second
	planParallel = 50
)

func newFleetPlan(p *program) *cobra.Command {
	f := &planning{fleet: fleet{program: p}}
	command := newCommand("plan [CLUSTER...]", "Print what would change on every selected cluster, before anything is changed", `
Print the fields that the modules would change on the clusters that the Placements of the fleet select, clusters with equal plans together.
A Placement or a strategy that would harm the fleet is refused first, such as a Placement that drops clusters that are away.

On each cluster a Pod runs "kubectl sno plan" with rights to read only, by a ManifestWork sno-plan; another one, sno-plan-rights, gives the
account of --executor the rights to apply that one before. Both are deleted afterwards, and nothing else is written there. The result is the
termination message of the Pod, at most 4096 bytes. What is in force already is left out, and so are the values that modules write for
themselves. Exit code 6: some clusters have no plan, for the reason that is printed.`, `
		# What the ClusterManagementAddOn of the hub would do
		kubectl sno fleet plan
		# A configuration before anything refers to it
		kubectl sno fleet plan --placement open-cluster-management/sno-canaries --configuration sno-0123456789 -o wide`,
		p.bindOutput, f.bindSelector, f.bindYes)
	flags := command.Flags()
	flags.StringSliceVar(&p.modules, "modules", nil, "Comma-separated modules; all of the configuration by default.")
	complete(command, "modules", p.moduleNames()...)
	flags.StringVar(&f.placement, "placement", "", "Plan for this Placement, NAMESPACE/NAME, instead of those of the ClusterManagementAddOn.")
	flags.StringVar(&f.configuration, "configuration", "", "The AddOnDeploymentConfig in the namespace of --placement.")
	flags.StringVar(&f.executor, "executor", snofleet.Namespace+"/"+executor.Name, "The account, NAMESPACE/NAME, with whose rights clusters carry out the plan.")
	flags.BoolVar(&f.grant, "grant-rights", true, "Grant the executor the rights for the plan, with those of the work agent; false if it has them.")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Minute, "How long to wait for each cluster.")
	command.MarkFlagsRequiredTogether("placement", "configuration")
	command.RunE = f.run
	return command
}

func (f *planning) run(command *cobra.Command, names []string) error {
	ctx := command.Context()
	if err := f.checkNames(); err != nil {
		return err
	}
	h, err := f.connectHub()
	if err != nil {
		return err
	}
	works, plans, err := f.works(ctx, h, names)
	if err != nil {
		return err
	}
	if err := f.confirm(len(works), "asked for a plan, by a Pod on each"); err != nil {
		return err
	}
	group, done := errgroup.Group{}, atomic.Int32{}
	group.SetLimit(planParallel)
	planned := make([]overview.Plan, len(works))
	for i, its := range works {
		group.Go(func() error {
			planned[i] = f.plan(ctx, h, its)
			f.progress(fmt.Sprintf("%d of %d clusters have answered", done.Add(1), len(works)))
			return nil
		})
	}
	_ = group.Wait() // errors are in the plans
	f.progress("")
	groups := overview.GroupPlans(append(plans, planned...))
	if err := errors.Join(f.print(planGroupsAnswer(groups, f.output.format == "wide")), ctx.Err()); err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(g overview.PlanGroup) bool { return g.Refused != "" }) {
		return exit(overview.ExitNotInForce)
	}
	return nil
}

// strategy returns that of the hub, or one for the flags.
func (f *planning) strategy(ctx context.Context, h *hub.Hub) (*addonv1alpha1.ClusterManagementAddOn, error) {
	if namespace, name, valid := strings.Cut(f.placement, "/"); valid {
		return rollout.AddOn(rollout.Group{Namespace: namespace, Placement: name, Configuration: f.configuration, Limits: rollout.DefaultLimits}), nil
	} else if f.placement != "" {
		return nil, fmt.Errorf("%w of --placement: %q; want NAMESPACE/NAME", errHubFlags, f.placement)
	}
	strategy, err := h.Strategy(ctx)
	if err == nil && strategy == nil {
		err = fmt.Errorf("%w: the hub has no ClusterManagementAddOn %s; create it, or set --placement and --configuration", errNoStrategy, snofleet.AddOn)
	}
	return strategy, err
}

// works checks what selects clusters and configures them, and returns the ManifestWorks of the clusters that can be
// asked, those of each in their order, and the plans of the others.
func (f *planning) works(ctx context.Context, h *hub.Hub, names []string) (works [][]*workv1.ManifestWork, plans []overview.Plan, err error) {
	account := workv1.ManifestWorkSubjectServiceAccount{}
	var valid bool
	if account.Namespace, account.Name, valid = strings.Cut(f.executor, "/"); !valid {
		return nil, nil, fmt.Errorf("%w of --executor: %q; want NAMESPACE/NAME", errHubFlags, f.executor)
	}
	strategy, err := f.strategy(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	placements, err := h.Placements(ctx, strategy)
	if err != nil {
		return nil, nil, err
	}
	selected, err := h.Selected(ctx, strategy)
	if err == nil {
		err = rollout.Check(strategy, placements, selected)
	}
	if err != nil {
		return nil, nil, err
	}
	configs, err := f.configurations(ctx, h, strategy)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := f.clusters(ctx, h, names)
	if err != nil {
		return nil, nil, err
	}
	groups := rollout.GroupOf(strategy, selected)
	for i := range chosen {
		c := &chosen[i]
		available := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		refused := ""
		switch group, is := groups[c.Name]; {
		case !is && slices.Contains(names, c.Name):
			refused = "no Placement of the fleet selects the cluster"
		case !is:
			continue
		case available == nil || available.Status != "True":
			refused = "the cluster does not report"
		case snofleet.Claim(c, snofleet.ClaimControlPlane) == "":
			refused = "the cluster has no claim " + snofleet.ClaimControlPlane + "; it is no OpenShift cluster, or nothing publishes the claim there"
		default:
			rights, work, err := fleetplan.Works(c.Name, configs[group], account)
			if err != nil {
				return nil, nil, err
			}
			its := []*workv1.ManifestWork{rights, work}
			if !f.grant {
				its = its[1:]
			}
			works = append(works, its)
		}
		if refused != "" {
			plans = append(plans, overview.Plan{Cluster: c.Name, Refused: refused})
		}
	}
	if len(works)+len(plans) == 0 {
		return nil, nil, fmt.Errorf("%w: of %d clusters no Placement of the fleet selects one", errNoCluster, len(chosen))
	}
	return works, plans, nil
}

// configurations returns those of the Placements, by NAMESPACE/NAME, with the chosen modules.
func (f *planning) configurations(ctx context.Context, h *hub.Hub, strategy *addonv1alpha1.ClusterManagementAddOn) (map[string]configuration.Configuration, error) {
	all := map[string]configuration.Configuration{}
	for _, p := range strategy.Spec.InstallStrategy.Placements {
		for _, c := range p.Configs { // CheckAddOn wants one of this kind
			if c.Resource != "addondeploymentconfigs" {
				continue
			}
			var object addonv1alpha1.AddOnDeploymentConfig
			if err := h.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, &object); err != nil {
				return nil, fmt.Errorf("reading AddOnDeploymentConfig %s/%s: %w", c.Namespace, c.Name, err)
			}
			config, err := configuration.Parse(&object)
			if err != nil {
				return nil, err
			}
			config.Modules = slices.DeleteFunc(config.Modules, func(name string) bool { return len(f.modules) > 0 && !slices.Contains(f.modules, name) })
			if len(config.Modules) == 0 {
				return nil, fmt.Errorf("%w: AddOnDeploymentConfig %s/%s has none of the modules %s", errNoStrategy, c.Namespace, c.Name, strings.Join(f.modules, ", "))
			}
			all[p.Namespace+"/"+p.Name] = config
		}
	}
	return all, nil
}

// plan creates the ManifestWorks one after the other, waits for the result and deletes them, whatever ends it.
func (f *planning) plan(ctx context.Context, h *hub.Hub, works []*workv1.ManifestWork) overview.Plan {
	out := overview.Plan{Cluster: works[0].Namespace}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	for _, work := range works {
		if err := h.Create(limited, work, client.FieldOwner(patch.FieldOwner("fleet"))); apierrors.IsAlreadyExists(err) {
			out.Refused = "ManifestWork " + work.Name + " exists: another plan runs; delete it if none does"
			return out
		} else if err != nil {
			out.Refused = fmt.Sprintf("creating ManifestWork %s: %v", work.Name, err)
			return out
		}
		defer f.remove(ctx, h, work)
		err := wait.PollUntilContextCancel(limited, planInterval, false, func(ctx context.Context) (final bool, err error) {
			if err := h.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
				return false, err
			}
			if work.Name == fleetplan.RightsName {
				if err := executor.Applied(work); err != nil {
					out.Refused = err.Error()
					return false, nil
				}
				return true, nil
			}
			out, final = fleetplan.Result(work)
			return final, nil
		})
		switch {
		case wait.Interrupted(err):
			out.Refused = fmt.Sprintf("no plan after %s: %s", f.timeout, cmp.Or(out.Refused, "the hub does not answer"))
			return out
		case err != nil:
			out.Refused = err.Error()
			return out
		}
	}
	return out
}

func (f *planning) remove(ctx context.Context, h *hub.Hub, work *workv1.ManifestWork) {
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := h.Delete(deleting, work); client.IgnoreNotFound(err) != nil {
		fmt.Fprintf(f.ErrOut, "Delete ManifestWork %s/%s: %v\n", work.Namespace, work.Name, err)
	}
}

func planGroupsAnswer(groups []overview.PlanGroup, wide bool) answer {
	t := table("CLUSTERS", "NAMES", "MODULE", "OBJECT", "FIELD", "DESIRED", "VERDICT", "WHY")
	var all []string
	for _, g := range groups {
		names := strings.Join(g.Clusters, ",")
		if !wide && len(g.Clusters) > 3 {
			names = strings.Join(g.Clusters[:3], ",") + ",..."
		}
		for _, c := range g.Clusters {
			all = append(all, "managedcluster/"+c)
		}
		n := len(g.Clusters)
		switch {
		case g.Refused != "":
			row(t, n, names, "-", "-", "-", "-", "refused", g.Refused)
		case len(g.Changes) == 0:
			row(t, n, names, "-", "-", "-", "-", "in force", "Nothing would change")
		}
		for _, c := range g.Changes {
			desired := c.Desired
			if !wide {
				desired = shorten(desired)
			}
			row(t, n, names, c.Module, c.Object, c.Field, desired, c.Verdict, c.Why)
		}
	}
	return answer{kind: "FleetPlan", value: map[string]any{"groups": groups}, names: all, table: t}
}

// newFleetReport returns the command that the Pod of a plan runs.
func newFleetReport(p *program) *cobra.Command {
	command := &cobra.Command{
		Use: "report-plan FILE", Short: "Write the plan of this cluster as a termination message, for fleet plan", Hidden: true, Args: cobra.ExactArgs(1),
	}
	p.bindModules(command)
	command.RunE = func(command *cobra.Command, file []string) error {
		changes, failure := p.changes(command.Context())
		message, err := fleetplan.Message(changes, failure)
		if err != nil {
			failure = err
			message, err = fleetplan.Message(nil, failure)
		}
		return errors.Join(failure, err, os.WriteFile(file[0], []byte(message), 0o600))
	}
	return command
}

// changes returns what the modules would change in the cluster.
func (p *program) changes(ctx context.Context) ([]overview.Change, error) {
	chosen, err := p.selectedModules()
	if err != nil {
		return nil, err
	}
	cluster, err := p.connect()
	if err != nil {
		return nil, err
	}
	planned, err := p.plans(ctx, cluster, chosen, plan.Options{})
	if err != nil {
		return nil, err
	}
	return changesOf(planned)
}

var errPlanFailed = errors.New("the module has no plan")

// changesOf returns what would be written, in words that are the same for clusters on which the same happens. A module
// that failed is an error.
func changesOf(planned []plan.Module) ([]overview.Change, error) {
	var changes []overview.Change
	for _, m := range planned {
		if m.Result.State == patch.Failed {
			return nil, fmt.Errorf("%s: %w: %s", m.Module, errPlanFailed, m.Message)
		}
		for _, r := range m.Rows {
			c := overview.Change{Module: m.Module, Object: r.Object, Field: r.Field, Desired: comparable(r.Field, r.Desired), Verdict: string(r.Verdict)}
			switch {
			case r.Verdict == plan.Blocked:
				c.Why = r.Why
			case !writes(r.Verdict):
				continue // in force, or there is nothing to do
			}
			if kind, _, is := strings.Cut(c.Object, "/"); is && kind == "node" {
				c.Object = "node/*"
			}
			if !slices.Contains(changes, c) {
				changes = append(changes, c)
			}
		}
	}
	return changes, nil
}

// comparable returns a value without what differs from cluster to cluster, and not longer than a table shows.
func comparable(field, desired string) string {
	const most = 120
	switch {
	case strings.Contains(field, `["`+patch.Domain+"/"):
		return "(bookkeeping)"
	case len(desired) > most:
		return fmt.Sprintf("%.*s... (%d bytes, sha256 %.4x)", most, desired, len(desired), sha256.Sum256([]byte(desired)))
	}
	return desired
}
