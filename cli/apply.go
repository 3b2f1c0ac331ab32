package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
)

var (
	// errFailed is returned when a module could not do what it should.
	errFailed = errors.New("not done")
	// errDryRun is returned for an unknown --dry-run.
	errDryRun = errors.New("unknown --dry-run")
)

// mostLooks bounds how often a module looks until it has nothing more to write. Beyond it somebody writes against us.
const mostLooks = 8

// done is what became of one object, or of a module that wrote nothing.
type done struct {
	Module  string `json:"module"`
	Object  string `json:"object"`
	Outcome string `json:"outcome"`
	State   string `json:"state"`
	Message string `json:"message"`
}

func newApply(p *program) *cobra.Command {
	var dryRun string
	var force bool
	command := &cobra.Command{
		Use:   "apply",
		Short: "Make the changes, once",
		Long: `Make the changes that plan shows, once and by server-side apply. What is as it should be is not written, so a second run writes nothing.

Nothing keeps it that way afterwards: for that there are the controllers (run). Nodes that ask to be drained are not answered.

Where a machine-config operator runs, a change of the graceful shutdown restarts the node, and is made at once;
--graceful-shutdown=off leaves it alone.`,
		Example: examples(`
			# What would be written
			kubectl sno apply --dry-run=server
			# Everything
			kubectl sno apply
			# Two modules, also where somebody else owns a field
			kubectl sno apply --modules ingress,console --force-conflicts`),
		Args: cobra.NoArgs,
	}
	out := bindOutput(command)
	modules := newChoice(command, true)
	bindDryRun(command, &dryRun)
	bindForce(command, &force)
	command.RunE = func(command *cobra.Command, _ []string) error {
		chosen, err := p.prepare(out, modules)
		if err != nil {
			return err
		}
		return p.carryOut(command.Context(), out, chosen, work{dryRun: dryRun, force: force, kind: "Apply"})
	}
	return command
}

func bindDryRun(command *cobra.Command, dryRun *string) {
	command.Flags().StringVar(dryRun, "dry-run", "none",
		`Must be "none", "server", or "client". If client, nothing is sent; if server, the API server says what it would do. Neither writes anything.`)
	complete(command, "dry-run", func() []string { return []string{"none", "server", "client"} })
}

// work is what apply and release do.
type work struct {
	dryRun           string
	force, releasing bool
	kind             string
}

// carryOut has the modules write, one after the other. One that cannot stops no other.
func (p *program) carryOut(ctx context.Context, out *output, modules []manager.Module, w work) error {
	if w.dryRun != "none" && w.dryRun != "client" && w.dryRun != "server" {
		return fmt.Errorf(`%w=%s; want "none", "server" or "client"`, errDryRun, w.dryRun)
	}
	cluster, err := p.connect()
	if err != nil {
		return err
	}
	progress := p.progress(len(modules))
	var all []done
	var failures []error
	for _, m := range modules {
		progress.next("Writing for " + m.Name())
		result, its, err := w.do(ctx, cluster, m)
		if err != nil {
			progress.end()
			return errors.Join(err, out.print(p, doneAnswer(w.kind, all)))
		}
		if result.State == patch.Failed || (w.releasing && result.State == patch.Blocked) {
			failures = append(failures, fmt.Errorf("%s: %w: %s", m.Name(), errFailed, plan.Message(result)))
		}
		all = append(all, its...)
	}
	progress.end()
	return errors.Join(append(failures, out.print(p, doneAnswer(w.kind, all)))...)
}

// do is what one module does.
func (w work) do(ctx context.Context, cluster client.Client, m manager.Module) (patch.Result, []done, error) {
	if w.dryRun != "none" {
		options := plan.Options{ForceConflicts: w.force, Releasing: w.releasing}
		if w.dryRun == "server" {
			options.Server = cluster
		}
		planned, err := plan.Of(ctx, cluster, m, options)
		if err != nil {
			return patch.Result{}, nil, err
		}
		var all []done
		for _, write := range planned.Writes {
			object, outcome := write.After, "applied"
			switch {
			case object == nil:
				object, outcome = write.Before, "deleted"
			case w.releasing:
				outcome = "released"
			}
			all = append(all, done{Module: m.Name(), Object: plan.NameOf(object), Outcome: outcome + " (" + w.dryRun + " dry run)"})
		}
		return planned.Result, complement(all, m.Name(), planned.Result), nil
	}
	by := &recording{Client: cluster, verb: "applied"}
	if w.releasing {
		by.verb = "released"
	}
	look, err := plan.Looker(by, m, manager.Options{ForceConflicts: w.force}, w.releasing)
	if err != nil {
		return patch.Result{}, nil, err
	}
	for range mostLooks {
		before := by.count
		target, result, err := look(ctx)
		if err == nil && w.releasing {
			err = by.conditions(ctx, target, m.Name())
		}
		if err != nil {
			return patch.Result{}, nil, err
		}
		if by.count == before {
			return result, complement(by.done(m.Name()), m.Name(), result), nil
		}
	}
	return patch.Result{}, nil, fmt.Errorf("%s: %w: somebody else keeps writing the same objects; the audit log tells who", m.Name(), errFailed)
}

// complement adds how the module stands.
func complement(all []done, module string, result patch.Result) []done {
	if len(all) == 0 {
		all = []done{{Module: module, Object: ownership.None, Outcome: "unchanged"}}
	}
	for i := range all {
		all[i].State, all[i].Message = result.State.String(), plan.Message(result)
	}
	return all
}

func doneAnswer(kind string, all []done) answer {
	t := table("MODULE", "OBJECT", "OUTCOME", "STATE", "MESSAGE")
	var names []string
	for _, d := range all {
		row(t, d.Module, d.Object, d.Outcome, d.State, d.Message)
		if d.Object != ownership.None {
			names = append(names, d.Object)
		}
	}
	return answer{kind: kind, value: &struct {
		Items []done `json:"items"`
	}{append([]done{}, all...)}, names: names, table: t}
}
