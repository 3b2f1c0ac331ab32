package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
)

func newPlan(p *program) *cobra.Command {
	var mustGather string
	var options plan.Options
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what each module would change, field by field",
		Long: `Show every field that a module would set, owns already, or may not touch, beside who owns it now.

Nothing is written, not even as a dry run, so the right to read is enough. With --must-gather no cluster is needed. What the API
server would add or refuse, diff shows.`,
		Example: examples(`
			# Everything that would change on this cluster
			kubectl sno plan
			# One module, with values in full
			kubectl sno plan --modules ingress -o wide
			# What a must-gather says, and what would happen if conflicts were forced
			kubectl sno plan --must-gather ./must-gather.local.123 --force-conflicts
			# The objects that would be written
			kubectl sno plan -o name`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	modules := newChoice(command, true)
	bindMustGather(command, &mustGather)
	bindForce(command, &options.ForceConflicts)
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := p.prepare(out, modules)
		if err != nil {
			return err
		}
		from, err := p.open(command, mustGather)
		if err != nil {
			return err
		}
		planned, err := p.plans(command.Context(), from.client, chosen, options)
		if err == nil {
			err = out.print(p, planAnswer(planned, out.format == "wide"))
		}
		return from.finish(p, err)
	}
	return command
}

func bindForce(command *cobra.Command, force *bool) {
	command.Flags().BoolVar(force, "force-conflicts", false,
		"Take fields that somebody else owns. What was there is remembered, and put back on release.")
}

// prepare checks what can be checked before there is a cluster.
func (*program) prepare(out *output, modules *choice) ([]manager.Module, error) {
	if err := out.check(); err != nil {
		return nil, err
	}
	return modules.chosen()
}

// plans has each module look.
func (p *program) plans(ctx context.Context, cluster client.Client, modules []manager.Module, options plan.Options) ([]plan.Module, error) {
	progress := p.progress(len(modules))
	defer progress.end()
	var all []plan.Module
	for _, m := range modules {
		progress.next("Looking at " + m.Name())
		each, err := plan.Of(ctx, cluster, m, options)
		if err != nil {
			return nil, err
		}
		all = append(all, each)
	}
	return all, nil
}

func planAnswer(planned []plan.Module, wide bool) answer {
	t := table("MODULE", "OBJECT", "FIELD", "LIVE", "DESIRED", "OWNER", "VERDICT", "WHY")
	var names []string
	for _, m := range planned {
		for _, r := range m.Rows {
			live, desired := r.Live, r.Desired
			if !wide {
				live, desired = shorten(live), shorten(desired)
			}
			row(t, m.Module, r.Object, r.Field, live, desired, r.Owner, string(r.Verdict), r.Why)
			if writes(r.Verdict) && !slices.Contains(names, r.Object) {
				names = append(names, r.Object)
			}
		}
	}
	return answer{kind: "Plan", value: &struct {
		Modules []plan.Module `json:"modules"`
	}{planned}, names: names, table: t}
}

// writes tells whether there is a write because of the verdict. A module's own words are no verdict on an object.
func writes(v plan.Verdict) bool {
	switch v {
	case plan.Own, plan.Set, plan.Remove, plan.Create, plan.Delete:
		return true
	case plan.InForce, plan.Blocked:
	}
	return false
}

// shorten fits a value into a column.
func shorten(value string) string {
	const most = 40
	if runes := []rune(value); len(runes) > most && value != ownership.None {
		return string(runes[:most-3]) + "..."
	}
	return value
}
